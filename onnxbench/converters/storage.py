"""Where the constants of one graph go while it is converted, each stored once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnxbench.core.values import Array
from onnxbench.folding import stored

#: The opset from which on a Constant gives any type.
ANY_CONSTANT = 9
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
#: Up to here a float64 holds every whole number.
_EXACT = 2**53 - 1


@dataclass
class Storage:
    """Where the constants of one graph go, and what names are taken in the whole model.

    Attributes:
        as_initializers: whether they are initializers; else they are Constant nodes.
        tensors: what adapters stored, by name.
        quick: names by what was asked for; most constants are asked for many times.
        taken: every name of the model.
        opset: of ai.onnx that the graph goes to.
    """

    as_initializers: bool
    taken: set[str]
    opset: int = 9
    tensors: dict[str, TensorProto] = field(default_factory=dict)
    quick: dict[object, str] = field(default_factory=dict)
    _shared: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)

    def fresh(self, wish: str) -> str:
        """A name that nobody has, like the one wished for."""
        name, number = wish, 1
        while name in self.taken:
            number += 1
            name = f"{wish}_{number}"
        self.taken.add(name)
        return name

    def holds(self, value: Array) -> bool:
        """Whether a constant has a form in the graph."""
        if self.as_initializers or self.opset >= ANY_CONSTANT or value.dtype in (np.float16, np.float32, np.float64):
            return True
        if value.dtype.kind not in "iub":
            return False
        return bool((np.abs(value.astype(np.float64)) <= _EXACT).all())

    def forget(self, count: int) -> None:
        """Store no more than the first constants, those of a node that was refused in the end left out."""
        for name in list(self.tensors)[count:]:
            del self.tensors[name]
        self._shared = {key: name for key, name in self._shared.items() if name in self.tensors}

    def nodes(self) -> list[NodeProto]:
        """The constants as nodes; whole numbers below opset 9 as floats that are cast, which holds what float64 does."""
        made = []
        for name, tensor in self.tensors.items():
            if self.opset >= ANY_CONSTANT or tensor.data_type in FLOATS:
                made.append(stored.node(tensor, name))
                continue
            wide = self.fresh(f"{name}_wide")
            value = numpy_helper.to_array(tensor).astype(np.float64)
            made.append(stored.node(numpy_helper.from_array(value), wide))
            made.append(helper.make_node("Cast", [wide], [name], to=tensor.data_type))
        return made

    def store(self, value: Array, wish: str) -> str:
        """Store a value once; its name."""
        key = (value.dtype.str + value.dtype.name, value.shape, value.tobytes())
        if value.dtype == object or key not in self._shared:
            name = self.fresh(wish)
            self.tensors[name] = _tensor(value, name)
            self._shared[key] = name
        return self._shared[key]


def _tensor(value: Array, name: str) -> TensorProto:

    return numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)
