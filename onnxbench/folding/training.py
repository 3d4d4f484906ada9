"""What the training information of a model needs of its main graph."""

from __future__ import annotations

from onnx import ModelProto

from onnxbench.core.hoist import every_name


def trained_names(model: ModelProto) -> frozenset[str]:
    """The values that it names, some of its own among them: its graphs read the main graph's, its bindings set weights."""
    found: set[str] = set()
    for info in model.training_info:
        found.update(every_name(info.initialization), every_name(info.algorithm))
        for binding in (*info.initialization_binding, *info.update_binding):
            found.update((binding.key, binding.value))
    return frozenset(found)
