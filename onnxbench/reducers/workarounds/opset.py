"""The whole model in another opset, where a runtime has other kernels, and does other optimizations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnxbench.converters import schemas
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.run import convert_model
from onnxbench.converters.runtime_target import newest_opset
from onnxbench.core.attributes import all_nodes
from onnxbench.core.graph import opset_imports, plain_domain
from onnxbench.core.model import Model
from onnxbench.errors import BenchError
from onnxbench.reducers.workarounds import Fault, way

#: Opsets that are tried above the model's and below it, besides the newest that the suspect loads.
_MOST = 4


@way("another opset", first=True, by_command=True)
def with_as_many_nodes(fault: Fault) -> Iterator[tuple[str, Model]]:
    """Those in which the nodes at fault have another form, or version, and alone do not fail."""
    yield from _around(fault, (entry for entry in _alone(fault) if _count(entry[1]) <= _count(fault.small)))


@way("another opset", by_command=True)
def with_more_nodes(fault: Fault) -> Iterator[tuple[str, Model]]:
    """Those that put several nodes in the place of one: rewriting that one alone changes less."""
    yield from _around(fault, (entry for entry in _alone(fault) if _count(entry[1]) > _count(fault.small)))


def _around(fault: Fault, tried: Iterable[tuple[int, Model]]) -> Iterator[tuple[str, Model]]:
    """The whole model in the opsets in which the nodes at fault alone do not fail.

    `onnxbench convert` compares a model with its source on ONNX Runtime, and refuses to write what differs; it is told not
    to where that is the runtime at fault, for here right numbers were compared.
    """
    for opset, small in tried:
        if not fault.passes(small):
            continue
        whole, flag = _converted(fault.model, opset, fault, verify=True), ""
        if whole is None:
            whole, flag = _converted(fault.model, opset, fault), " --no-verify"
        if whole is not None:
            yield f"onnxbench convert model.onnx --to {opset} -o fixed.onnx{flag}", whole


def _alone(fault: Fault) -> Iterator[tuple[int, Model]]:
    """The nodes at fault, in each opset that they can be brought to."""
    for opset in _candidates(fault):
        small = _converted(fault.small, opset, fault)
        if small is not None:
            yield opset, small


def _count(model: Model) -> int:
    return sum(1 for _ in all_nodes(model.proto))


def _candidates(fault: Fault) -> Iterator[int]:
    """The next opset, those where an operator at fault has another version, the newest; then down in the same way."""
    here, newest = opset_imports(fault.model.proto.opset_import).get("", 0), schemas.newest("")
    if not 1 <= here <= newest:
        return
    changes = [opset for opset in range(2, newest + 1) if _changes(fault.small, opset)]
    above = sorted({here + 1, *(opset for opset in changes if opset > here)} - {newest + 1})[:_MOST]
    yield from above
    loaded = newest if fault.suspect.decides else newest_opset(fault.suspect, here, fault.limits)
    if loaded is not None and loaded not in (here, *above):
        yield loaded
    yield from sorted({here - 1, *(opset - 1 for opset in changes if opset <= here)} - {0}, reverse=True)[:_MOST]


def _changes(model: Model, opset: int) -> bool:
    """Whether an opset has a new version of an operator."""
    operators = {node.op_type for node in all_nodes(model.proto) if not plain_domain(node.domain)}
    return any(_since(op, opset) != _since(op, opset - 1) for op in operators)


def _since(op: str, opset: int) -> int:
    """The version of an operator at an opset; 0 if there is none."""
    found = schemas.schema("", op, opset)
    return 0 if found is None else int(found.since_version)


def _converted(model: Model, opset: int, fault: Fault, *, verify: bool = False) -> Model | None:
    try:
        return convert_model(model, ConvertOptions({"": opset}, verify=verify, limits=fault.limits))[0]
    except BenchError:  # a model that says nothing of its opset, or weights that are gone
        return None
