"""Failures that somebody has reported already, and what they look like once they are reduced."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from onnx import ModelProto, TensorProto

from onnxbench.core.graph import GraphView
from onnxbench.core.values import tensor_type


@dataclass(frozen=True, slots=True)
class Known:
    """A reported failure: where, and in a line what it is."""

    issue: str
    title: str


def lookup(model: ModelProto, runtime: str, version: str, kind: str) -> list[Known]:
    """The reported failures that a reproducer looks like.

    Args:
        model: the reproducer.
        runtime: name of the suspect.
        version: its release.
        kind: of the failure's signature.
    """
    return [
        Known(entry["issue"], entry["title"])
        for entry in _entries()
        if entry["runtime"] == runtime
        and entry["kind"] == kind
        and _numbers(entry.get("since", "")) <= _numbers(version) <= _upper(entry.get("until"))
        and _fits(entry, model)
    ]


@cache
def _entries() -> list[dict[str, Any]]:
    text = (resources.files("onnxbench.reducers") / "known_failures.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["failure"]
    return found


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", release)[:3])


def _upper(release: str | None) -> tuple[float, ...]:
    """Patch releases of the last minor one are in."""
    return (*_numbers(release), float("inf")) if release is not None else (float("inf"),)


def _fits(entry: dict[str, Any], model: ModelProto) -> bool:
    wanted = Counter(entry["operators"])
    if Counter(node.op_type for node in model.graph.node) != wanted:
        return False
    view = GraphView(model, model.graph)
    there = Counter(
        (view.producer[name].proto.op_type, node.proto.op_type)
        for node in view.nodes
        for name in dict.fromkeys(node.inputs)
        if name in view.producer
    )
    edges = Counter((entry["operators"][i], entry["operators"][j]) for i, j in entry.get("edges", []))
    if any(there[edge] < count for edge, count in edges.items()):
        return False
    codes = {TensorProto.DataType.Value(name) for name in entry.get("dtypes", [])}
    return not codes or bool(codes & _dtypes(model))


def _dtypes(model: ModelProto) -> set[int]:
    graph = model.graph
    found = {tensor.data_type for tensor in graph.initializer}
    for value in (*graph.input, *graph.output, *graph.value_info):
        tensor = tensor_type(value.type)
        if tensor is not None:
            found.add(tensor.elem_type)
    return found
