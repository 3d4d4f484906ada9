"""Extract a piece of a model: choose, type, cut, check."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx import ModelProto, TypeProto, ValueInfoProto

from onnxbench.core.border import How, home_of
from onnxbench.core.counts import count_nodes, stored_bytes
from onnxbench.core.graph import GraphView, refuse_doubles
from onnxbench.core.model import Model
from onnxbench.core.slimming import fatten, slim
from onnxbench.core.subgraph import Piece, carve
from onnxbench.extracting.choosing import Cut, captured_constants, choose
from onnxbench.extracting.naming import part_sizes
from onnxbench.extracting.ports import ports
from onnxbench.extracting.recorder import Feeds, Recorder
from onnxbench.extracting.report import Extraction
from onnxbench.extracting.request import ExtractRequest
from onnxbench.extracting.soundness import refuse_faults
from onnxbench.extracting.typing import Typing

if TYPE_CHECKING:
    from onnxbench.extracting.data import Data

#: Bytes of a file above which its weights are not carried through every step.
_HEAVY = 32 << 20
_COMPARED = "fed with the recorded inputs, the piece gives the recorded outputs"


@dataclass(frozen=True, slots=True)
class Extracted:
    """A piece, its report, and what was recorded of it, if that was asked for."""

    model: Model
    report: Extraction
    data: Data | None


def extract_model(model: Model, request: ExtractRequest, feeds: Callable[[Model], Feeds] | None = None) -> Extracted:
    """A piece of a model that is a valid model of its own.

    Args:
        model: not changed.
        request: what is wanted.
        feeds: gives inputs of the model to run it with, if it must be run; made up if there is none.

    Raises:
        AnswerIsNo: OB102 if no valid piece can be made: inputs are missing, a type is not told.
        NameNotFound: OB303 for what is not there.
        ModelError: OB304, OB306 for weights that are not to be had; OB308 if a run is wanted and there can be none.
        SafetyStop: OB501 if the piece was run and computes something else.
    """
    source = slim(model) if model.proto.ByteSize() > _HEAVY else model
    main = GraphView(source.proto, source.proto.graph)
    cut = choose(source, main, request)
    refuse_doubles(cut.view, model.label)
    recorder = Recorder(source, feeds or _made_up, request.limits)
    typing = Typing(source, cut, request, recorder)
    typing.believe()
    cuts = _cuts(cut, request)
    known = captured_constants(source, cut)
    typing.of_inputs([name for name in cut.border if name not in known and _is_input(cut, name, cuts)])
    piece = carve(source, cut.view, cut.nodes, known, types=typing.found, outputs=cut.outputs, cuts=cuts, static=False)
    typed = typing.of_outputs(piece)
    part_sizes(piece.model.proto.graph, cut.view)
    _keep_notes(piece, cut)
    made = dataclasses.replace(piece.model, path=model.path, label=model.label)
    fault = refuse_faults(source, made, request, typed=typed)
    report = _report(source, made, cut, typing)
    if fault:
        report.notes.append(f"the piece has a fault of the model: {fault}")
    data = None
    if request.with_data:
        from onnxbench.extracting.data import record_data

        data, doubt = record_data(source, made, cut, recorder)
        report.notes.append(f"the piece was not compared with the whole: {doubt}" if doubt else _COMPARED)
    return Extracted(made, report, data)


def extract(
    model: ModelProto,
    to: Sequence[str] = (),
    from_: Sequence[str] = (),
    *,
    nodes: Sequence[str] = (),
    ops: Sequence[str] = (),
    scopes: Sequence[str] = (),
    around: Sequence[str] = (),
    hops: int = 1,
    auto_inputs: bool = False,
    value_types: Mapping[str, TypeProto] | None = None,
    weights_as_inputs: bool = False,
) -> ModelProto:
    """A piece of a model in memory, whose weights it holds itself, as a valid model.

    Args:
        model: not changed.
        to: selections where the piece ends: values, or nodes, whose outputs are meant.
        from_: selections where it starts; all that is needed is kept if there are none.
        nodes: selections of the nodes of a block, instead of ends; `ops` and `scopes` name some by operator and block.
        ops: operators.
        scopes: names of blocks.
        around: nodes in the middle of a block of what is within some `hops`.
        hops: how far that is.
        auto_inputs: add the inputs that the piece needs and nobody listed.
        value_types: types by name of value, where nobody else tells.
        weights_as_inputs: make inputs of initializers.

    Raises:
        AnswerIsNo: OB102 if no valid piece can be made of it.
        NameNotFound: OB303 for what is not there.
    """
    request = ExtractRequest(
        to=to,
        from_=from_,
        nodes=nodes,
        ops=ops,
        scopes=scopes,
        around=around,
        hops=hops,
        auto_inputs=auto_inputs,
        value_types=value_types or {},
        weights_as_inputs=weights_as_inputs,
    )
    return fatten(extract_model(Model(model), request).model).proto


def _made_up(model: Model) -> Feeds:
    from onnxbench.core.feeds import generate

    return generate(GraphView(model.proto, model.proto.graph))


def _cuts(cut: Cut, request: ExtractRequest) -> dict[str, How]:
    """What enters as an input against the rule: weights that were named as a start, or all; constants as such."""
    found: dict[str, How] = dict.fromkeys((name for name in cut.border if name in cut.starts), "open")
    for name in cut.border:
        home = home_of(cut.view, name)
        if home is None:
            continue
        if home.is_overridable(name) and not request.weights_as_inputs:
            found.pop(name, None)  # an input with a default is one already
        elif request.weights_as_inputs and name in home.initializers:
            found[name] = "open"
    return found


def _is_input(cut: Cut, name: str, cuts: Mapping[str, How]) -> bool:
    if name in cuts:
        return True
    return not any(name in scope.initializers or name in scope.sparse for scope in cut.view.outward())


def _keep_notes(piece: Piece, cut: Cut) -> None:
    """Keep what the file says of inputs and outputs besides their types."""
    noted: dict[str, ValueInfoProto] = {}
    for scope in cut.view.outward():
        for value in (*scope.graph.value_info, *scope.graph.output, *scope.graph.input):
            if value.doc_string or len(value.metadata_props):
                noted.setdefault(value.name, value)
    graph = piece.model.proto.graph
    for value in (*graph.input, *graph.output):
        told = noted.get(value.name)
        if told is not None and not value.doc_string and not len(value.metadata_props):
            value.doc_string = told.doc_string
            value.metadata_props.extend(told.metadata_props)


def _report(source: Model, piece: Model, cut: Cut, typing: Typing) -> Extraction:
    report = Extraction(source.label)
    owner = cut.view.owner
    report.where = f"a body of {owner.label}" if owner is not None else ""
    report.nodes_before, report.all_nodes_before = count_nodes(source.proto)
    report.nodes_after, report.all_nodes_after = count_nodes(piece.proto)
    report.bytes_before, report.bytes_after = stored_bytes(source), stored_bytes(piece)
    report.inputs, report.outputs = ports(piece.proto.graph, cut, typing)
    report.functions = ["::".join(filter(None, (f.domain, f.name, f.overload))) for f in piece.proto.functions]
    report.notes += [f"--from {name} is not needed: nothing that the piece computes depends on it" for name in cut.idle]
    if cut.added:
        report.notes.append(f"inputs were added: {', '.join(cut.added)}")
    return report
