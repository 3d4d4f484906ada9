"""A newer opset, where that gives an operator a newer form: an outdated one would be a maintainer's first question."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnxbench.converters import schemas
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.run import convert_model
from onnxbench.core.attributes import all_nodes
from onnxbench.core.graph import opset_imports
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.shrink import Shrinker

#: Forms that are tried, the newest first.
_MOST = 3


@shrink_pass("opset", "bring operators that have a newer form to the lowest opset that has it", 85, newer=True)
def run(shrinker: Shrinker) -> None:
    """The newest form of all nodes, at the lowest opset that has it, for older releases load that; else the one before it."""
    here = opset_imports(shrinker.best.proto.opset_import).get("", 0)
    newest = schemas.newest("")
    if not 1 <= here < newest or _is_current(shrinker, newest):
        return
    forms = list(_forms(shrinker, range(here + 1, newest + 1)))
    for proto in forms[: -_MOST - 1 : -1]:
        if shrinker.consider(shrinker.best.with_model(proto)):
            return


def _is_current(shrinker: Shrinker, newest: int) -> bool:
    """Whether nothing has a newer form: the usual case, told at once."""
    proto = _converted(shrinker, newest)
    return proto is not None and _form(proto) == _form(shrinker.best.proto)


def _forms(shrinker: Shrinker, opsets: range) -> Iterator[ModelProto]:
    """The model with each form that its nodes take on the way up, the oldest first."""
    form = _form(shrinker.best.proto)
    for opset in opsets:
        proto = _converted(shrinker, opset)
        if proto is not None and _form(proto) != form:
            form = _form(proto)
            yield proto


def _converted(shrinker: Shrinker, opset: int) -> ModelProto | None:
    """The model in another opset; None if a node has no form there, or takes other nodes or more attributes than now."""
    options = ConvertOptions({"": opset}, verify=False, limits=shrinker.settler.limits)
    done, report = convert_model(shrinker.best.model, options)
    if done is None or any(len(rewrite.result) != 1 for rewrite in report.rewrites):
        return None
    return done.proto if _attributes(done.proto) <= _attributes(shrinker.best.proto) else None


def _attributes(proto: ModelProto) -> int:
    return sum(len(node.attribute) for node in all_nodes(proto))


def _form(proto: ModelProto) -> list[bytes]:
    return [node.SerializeToString(deterministic=True) for node in all_nodes(proto)]
