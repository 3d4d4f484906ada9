"""Where the constants of one graph go while it is converted, each stored once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxbench.core.values import Array


@dataclass
class Storage:
    """Where the constants of one graph go, and what names are taken in the whole model.

    Attributes:
        as_initializers: whether they are initializers; else they are Constant nodes.
        tensors: what adapters stored, by name.
        quick: names by what was asked for; most constants are asked for many times.
        taken: every name of the model.
    """

    as_initializers: bool
    taken: set[str]
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

    def forget(self, count: int) -> None:
        """Store no more than the first constants, those of a node that was refused in the end left out."""
        for name in list(self.tensors)[count:]:
            del self.tensors[name]
        self._shared = {key: name for key, name in self._shared.items() if name in self.tensors}

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
