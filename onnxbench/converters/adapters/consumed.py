"""`consumed_inputs` of opset 1: a hint of Caffe2 that says which buffers may be written over; it has no meaning.

Sources: the operators of ai.onnx 1 and 6.
"""

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site

_OPERATORS = (
    "Abs Add Ceil Clip Div Elu Exp Floor HardSigmoid InstanceNormalization LeakyRelu Log Max Mean Min Mul Neg PRelu "
    "Reciprocal Relu Selu Sigmoid Sqrt Sub Sum Tanh Dropout BatchNormalization"
)


def _drop(site: Site) -> None:
    _without(site)
    rules.keep(site)


def _without(site: Site) -> None:
    kept = [attribute for attribute in site.node.attribute if attribute.name != "consumed_inputs"]
    del site.node.attribute[:]
    site.node.attribute.extend(kept)


def _bring_back(site: Site) -> None:
    """BatchNormalization-1 demands the hint: the running mean and variance may be written over (inputs 3 and 4)."""
    site.same(consumed_inputs=[0, 0, 0, 1, 1])


for _op in _OPERATORS.split():
    adapter(_op, 1, 6)(_drop)
adapter("BatchNormalization", 6, 1)(_bring_back)
