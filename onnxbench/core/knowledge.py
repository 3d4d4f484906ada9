"""What is known of sizes and constants of a graph without running anything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxbench.core.graph import GraphView, Node
from onnxbench.core.model import Model
from onnxbench.core.sizes import Sizes, dims_in
from onnxbench.core.values import Array
from onnxbench.core.weights import array as array_of
from onnxbench.errors import ModelError

Dims = Sequence[int | None] | None


class Knowledge:
    """Answers on one model, given the sizes that its inputs will have."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes

    def dims(self, view: GraphView, name: str, depth: int = 0) -> Dims:
        """The dims of a value as far as declarations and shape-keeping operators tell; None if not even the rank."""
        if name in view.initializers:
            return tuple(view.initializers[name].dims)
        if view.parent is None and name in self.sizes.shapes:
            return self.sizes.shapes[name]
        declared = dims_in(view.types[name]) if name in view.types else None
        if declared is not None:
            known = (d.dim_value if d.HasField("dim_value") else self.sizes.symbols.get(d.dim_param) for d in declared)
            return tuple(known)
        node = view.producer.get(name)
        if depth > 50 or (node is None and view.parent is None):
            return None
        return self._made(view, node, depth) if node is not None else self._outside(view, name, depth)

    def _made(self, view: GraphView, node: Node, depth: int) -> Dims:
        if node.proto.op_type == "Constant":
            tensor = next((a.t for a in node.proto.attribute if a.name == "value"), None)
            return None if tensor is None else tuple(tensor.dims)
        if node.proto.op_type in ("Identity", "Cast", "DequantizeLinear", "QuantizeLinear", "Relu", "Dropout"):
            return self.dims(view, node.inputs[0], depth + 1)
        if node.proto.op_type == "Transpose":
            before = self.dims(view, node.inputs[0], depth + 1)
            perm = next((list(a.ints) for a in node.proto.attribute if a.name == "perm"), None)
            if before is not None:
                order = perm if perm is not None else list(range(len(before)))[::-1]
                return tuple(before[i] for i in order) if sorted(order) == list(range(len(before))) else None
        return None

    def _outside(self, view: GraphView, name: str, depth: int) -> Dims:
        assert view.parent is not None
        if not view.isolated:
            return None if view.defines(name) else self.dims(view.parent, name, depth + 1)
        formals = list(view.inputs)
        actuals = view.owner.proto.input if view.owner is not None else ()
        place = formals.index(name) if name in formals else len(actuals)
        return self.dims(view.parent, actuals[place], depth + 1) if place < len(actuals) else None

    def constant(self, view: GraphView, name: str) -> Array | None:
        """A small stored constant."""
        tensor = view.initializers.get(name)
        node = view.producer.get(name)
        if tensor is None and node is not None and node.proto.op_type == "Constant":
            attribute = node.proto.attribute[0] if node.proto.attribute else None
            if attribute is not None and attribute.name in ("value_int", "value_float"):
                return np.asarray(attribute.i if attribute.name == "value_int" else attribute.f)
            tensor = attribute.t if attribute is not None and attribute.name == "value" else None
        if tensor is None or name in view.inputs or np.prod(tensor.dims, dtype=float) > 1024:
            return None
        if tensor.data_location == TensorProto.EXTERNAL or tensor.data_type == TensorProto.STRING:
            return None
        try:
            return array_of(Model(view.model), tensor)
        except ModelError:
            return None

    def scalar(self, view: GraphView, name: str) -> float | None:
        """A constant all of whose elements are one real number."""
        array = self.constant(view, name)
        if array is None or array.size == 0 or array.dtype.kind not in "iuf" or (array != array.flat[0]).any():
            return None
        return float(array.flat[0])
