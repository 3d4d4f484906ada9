"""The operator at fault, as the function that its specification says it is."""

from collections.abc import Mapping, Sequence

from onnx import ModelProto, TypeProto

from onnxbench import isolate
from onnxbench.core.graph import plain_domain
from onnxbench.reducers.workarounds import Spot, rewrite

_SECONDS = 60.0


@rewrite("expanded", "the operators at fault are replaced by the functions that ONNX defines them by")
def expanded(model: ModelProto, spots: Sequence[Spot], types: Mapping[str, TypeProto]) -> bool:
    """By onnx's inliner (ONNX IR, "Functions"), in a worker; every node of these operators is replaced."""
    operators = sorted({(plain_domain(spot.node.domain), spot.node.op_type) for spot in spots})
    result = isolate.call_light(run_inliner, (model.SerializeToString(), operators), timeout=_SECONDS)
    if not isinstance(result, isolate.Ok):
        return False
    inlined = ModelProto.FromString(result.value)
    if [node.op_type for node in inlined.graph.node] == [node.op_type for node in model.graph.node]:
        return False
    model.CopyFrom(inlined)
    return True


def run_inliner(serialized: bytes, operators: Sequence[tuple[str, str]]) -> bytes:
    """Replace operators by the bodies of their schemas; for a worker."""
    from onnx import inliner

    model = ModelProto.FromString(serialized)
    inlined: ModelProto = inliner.inline_selected_functions(model, list(operators), inline_schema_functions=True)
    return bytes(inlined.SerializeToString())
