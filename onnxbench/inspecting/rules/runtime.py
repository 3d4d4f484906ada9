"""What the installed ONNX Runtime says of a model's versions."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import TensorProto, helper

from onnxbench.core.model import Model
from onnxbench.inspecting.problems import Facts, problem
from onnxbench.runtimes.find import find

#: What every release that onnxbench works with takes (onnxruntime 1.22): below, nobody needs to be asked.
_OPSET, _IR = 22, 10


@problem("OB629", "warning", "the installed ONNX Runtime does not take the opset or the IR version")
def _too_new(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Asked by a model of one node with the same versions: which opsets a release takes no attribute tells."""
    opset, ir = facts.view.opsets.get("", 0), facts.model.proto.ir_version
    if opset <= _OPSET and ir <= _IR:
        return
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "probe", [x], [y])
    imports = [helper.make_opsetid("", max(opset, 1))]
    probe = Model(helper.make_model(graph, opset_imports=imports, ir_version=ir))
    outcome = find("onnxruntime:opt=disable").run(probe, {}, limits=facts.limits)
    if outcome.phase == "load":
        reason = " ".join(outcome.message.split())[:200]
        yield (
            "model",
            f"opset {opset}, IR {ir}: {reason}",
            "pip install -U onnxruntime",
        )
