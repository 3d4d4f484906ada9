"""Nothing but the model: no docs, notes, producer, or opsets that nothing uses."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto

from onnxbench.core.attributes import all_graphs, all_nodes
from onnxbench.core.external import MARK
from onnxbench.core.graph import plain_domain
from onnxbench.core.tensors import tensors
from onnxbench.reducers.edits import keep
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.shrink import Shrinker


@shrink_pass(
    "metadata",
    "drop doc strings, metadata, annotations, the producer, and opset imports that nothing uses",
    90,
    last=True,
    anonymizes=True,
)
def run(shrinker: Shrinker) -> None:
    """All at once; then each kind, should one of them matter."""
    kinds = (_drop_notes, _drop_header, _drop_annotations, _drop_opsets)
    proto = shrinker.best.draft()
    for drop in kinds:
        drop(proto)
    if shrinker.consider(shrinker.best.with_model(proto)):
        return
    for drop in kinds:
        proto = shrinker.best.draft()
        drop(proto)
        shrinker.consider(shrinker.best.with_model(proto))


def _drop_notes(proto: ModelProto) -> None:
    graphs = list(all_graphs(proto))
    owners: list[Any] = [proto, *graphs, *all_nodes(proto), *proto.functions, *tensors(proto)]
    owners += [value for graph in graphs for value in (*graph.input, *graph.output, *graph.value_info)]
    owners += [attribute for node in all_nodes(proto) for attribute in node.attribute]
    for owner in owners:
        owner.ClearField("doc_string")
        if hasattr(owner, "metadata_props"):
            marks = [(entry.key, entry.value) for entry in owner.metadata_props if entry.key == MARK]
            owner.ClearField("metadata_props")
            for key, value in marks:  # of a reference that goes back into the model when it is saved
                owner.metadata_props.add(key=key, value=value)


def _drop_header(proto: ModelProto) -> None:
    for field in ("producer_name", "producer_version", "domain", "model_version", "training_info"):
        proto.ClearField(field)


def _drop_annotations(proto: ModelProto) -> None:
    for graph in all_graphs(proto):
        del graph.quantization_annotation[:]


def _drop_opsets(proto: ModelProto) -> None:
    used = {plain_domain(node.domain) for node in all_nodes(proto)} | {""}
    keep(proto.opset_import, [entry for entry in proto.opset_import if plain_domain(entry.domain) in used])
