"""Short names that can be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto

from onnxbench.core.attributes import all_graphs, all_nodes
from onnxbench.core.graph import plain_domain
from onnxbench.reducers.measure import SHORT, names
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.shrink import Shrinker

Kinds = tuple[str, ...]
_EVERY: Kinds = ("values", "nodes", "dims", "graphs", "functions")


@shrink_pass("names", "give values, nodes, dims, graphs and functions short names", 95, last=True, anonymizes=True)
def run(shrinker: Shrinker) -> None:
    """All at once; then each kind, should a name matter."""
    if all(SHORT.fullmatch(name) for name in names(shrinker.best.proto)):
        return
    if not shrinker.consider(_renamed(shrinker.best, _EVERY), larger=True):
        for kind in _EVERY:
            shrinker.consider(_renamed(shrinker.best, (kind,)), larger=True)


def _renamed(best: Reproducer, kinds: Kinds) -> Reproducer:
    proto = best.draft()
    values = _values(proto) if "values" in kinds else {}
    if "nodes" in kinds:
        for i, node in enumerate([node for node in all_nodes(proto) if node.name]):
            node.name = f"node{i}"
    if "functions" in kinds:
        _rename_functions(proto)
    if "graphs" in kinds:
        for i, graph in enumerate(all_graphs(proto)):
            graph.name = f"g{i or ''}"
    if "dims" in kinds:
        _rename_dims(proto)
    _rename_values(proto, values)
    return best.with_model(proto, {values.get(name, name): value for name, value in best.feeds.items()})


def _values(proto: ModelProto) -> dict[str, str]:
    """A new name for every value; the same name means the same everywhere, so that captures stay what they are."""
    graph = proto.graph
    held = {tensor.name for g in all_graphs(proto) for tensor in g.initializer}
    held |= {tensor.values.name for g in all_graphs(proto) for tensor in g.sparse_initializer}
    inputs = [value.name for value in graph.input if value.name not in held]
    outputs = [value.name for value in graph.output if value.name not in inputs]
    found: dict[str, str] = {}
    for letter, old in (("x", inputs), ("w", held), ("y", outputs)):
        new = [name for name in (sorted(old) if letter == "w" else old) if name not in found]
        found.update((name, letter if len(new) == 1 else f"{letter}{i}") for i, name in enumerate(new))
    rest = [name for name in _all_values(proto) if name and name not in found]
    found.update((name, f"h{i}") for i, name in enumerate(dict.fromkeys(rest)))
    return found


def _all_values(proto: ModelProto) -> Iterator[str]:
    for graph in all_graphs(proto):
        yield from (value.name for value in (*graph.input, *graph.output, *graph.value_info))
    for function in proto.functions:
        yield from (*function.input, *function.output)
    for node in all_nodes(proto):
        yield from (*node.input, *node.output)


def _rename_values(proto: ModelProto, new: Mapping[str, str]) -> None:
    for graph in all_graphs(proto):
        _rename_declared(graph, new)
    for function in proto.functions:
        function.input[:] = [new.get(name, name) for name in function.input]
        function.output[:] = [new.get(name, name) for name in function.output]
        for value in function.value_info:
            value.name = new.get(value.name, value.name)
    for node in all_nodes(proto):
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]


def _rename_declared(graph: GraphProto, new: Mapping[str, str]) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = new.get(value.name, value.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = new.get(sparse.values.name, sparse.values.name)
    for annotation in graph.quantization_annotation:
        annotation.tensor_name = new.get(annotation.tensor_name, annotation.tensor_name)
        for entry in annotation.quant_parameter_tensor_names:
            entry.value = new.get(entry.value, entry.value)


def _rename_functions(proto: ModelProto) -> None:
    """The functions, and the attributes that they take; their calls follow."""
    new = {(plain_domain(f.domain), f.name): f"f{i}" for i, f in enumerate(proto.functions)}
    domains = {domain for domain, _ in new}
    for node in all_nodes(proto):
        if (plain_domain(node.domain), node.op_type) in new:
            node.op_type, node.domain = new[plain_domain(node.domain), node.op_type], "local"
    for function in proto.functions:
        function.name, function.domain = new[plain_domain(function.domain), function.name], "local"
    for owner in (proto, *proto.functions):
        kept = {entry.domain: entry.version for entry in owner.opset_import}
        del owner.opset_import[:]
        for domain, version in kept.items():
            if plain_domain(domain) not in domains:
                owner.opset_import.add(domain=domain, version=version)
        if domains & {plain_domain(domain) for domain in kept}:
            owner.opset_import.add(domain="local", version=1)


def _rename_dims(proto: ModelProto) -> None:
    new: dict[str, str] = {}
    for graph in all_graphs(proto):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.dim_param = new.setdefault(dim.dim_param, f"d{len(new)}")
