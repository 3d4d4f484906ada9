"""The newest opsets and IR version that a runtime loads, found out by asking it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import TensorProto, helper

from onnxbench.converters import schemas
from onnxbench.converters.ir import released_with
from onnxbench.core.model import Model
from onnxbench.errors import MachineError
from onnxbench.runtimes.base import Limits, Runtime
from onnxbench.runtimes.find import find


@dataclass(frozen=True, slots=True)
class RuntimeTarget:
    """What a runtime loads.

    Attributes:
        runtime: its name, as typed.
        opsets: the newest version by domain, no newer than the installed onnx knows.
        ir: the highest IR version.
    """

    runtime: str
    opsets: dict[str, int]
    ir: int


def target_of(name: str, limits: Limits | None = None) -> RuntimeTarget:
    """Ask a runtime for a model of one Identity at ever newer opsets.

    Raises:
        UsageError: OB205 for an unknown runtime.
        MachineError: OB401 if it is not installed or loads no opset at all.
    """
    runtime, limits = find(name), limits or Limits()
    opset = newest_opset(runtime, 0, limits)
    if opset is None:
        raise MachineError("OB401", f"{name} loads a model of no opset", hint="onnxbench runtimes")
    low, high = 3, 20
    ir = next((version for version in range(high, low, -1) if _loads(runtime, _model(opset, version), limits)), None)
    if ir is None:
        raise MachineError("OB401", f"{name} loads a model of no IR version", hint="onnxbench runtimes")
    opsets = {"": opset}
    learned = _newest(runtime, schemas.newest("ai.onnx.ml"), lambda version: _learned(version, opset, ir), limits)
    if learned is not None:
        opsets["ai.onnx.ml"] = learned
    return RuntimeTarget(name, opsets, ir)


def newest_opset(runtime: Runtime, above: int, limits: Limits) -> int | None:
    """The newest opset above a given one that a runtime loads, as far as the installed onnx knows; None if none."""
    return _newest(
        runtime,
        schemas.newest(""),
        lambda version: _model(version, min(released_with({"": version}), 10)),
        limits,
        above,
    )


def _newest(runtime: Runtime, most: int, make: Callable[[int], Model], limits: Limits, above: int = 0) -> int | None:
    for version in range(most, above, -1):
        if _loads(runtime, make(version), limits):
            return version
    return None


def _loads(runtime: Runtime, model: Model, limits: Limits) -> bool:
    import numpy as np

    return runtime.run(model, {"x": np.ones([1, 2], np.float32)}, limits=limits).ok


def _model(opset: int, ir: int) -> Model:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "probe", value[:1], value[1:])
    return Model(
        helper.make_model(graph, ir_version=ir, opset_imports=[helper.make_opsetid("", opset)]), label="a probe"
    )


def _learned(version: int, opset: int, ir: int) -> Model:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xy"]
    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    graph = helper.make_graph([node], "probe", value[:1], value[1:])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", version)]
    return Model(helper.make_model(graph, ir_version=ir, opset_imports=imports), label="a probe")
