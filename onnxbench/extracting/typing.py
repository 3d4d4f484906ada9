"""Tell the types of the values at a cut: from the file, from the user, from inference, from a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import onnx
from onnx import GraphProto, TypeProto

from onnxbench.core.border import Types, home_of, is_complete
from onnxbench.core.check import lightened
from onnxbench.core.graph import call_key, plain_domain
from onnxbench.core.model import Model
from onnxbench.core.nearest import not_found
from onnxbench.core.sizes import dims_in
from onnxbench.core.subgraph import Piece, carve
from onnxbench.core.types import infer_outputs, type_of, value_info
from onnxbench.errors import AnswerIsNo, escape, quote
from onnxbench.extracting.choosing import Cut
from onnxbench.extracting.recorder import Recorder
from onnxbench.extracting.request import ExtractRequest
from onnxbench.extracting.tracing import trace

if TYPE_CHECKING:
    from onnxbench.core.shapes import Shapes


@dataclass(slots=True)
class Typing:
    """Finds types for the values of one cut.

    Attributes:
        found: types that the file does not declare, by name.
        recorded: values whose type a run told; only their rank is claimed.
    """

    model: Model
    cut: Cut
    request: ExtractRequest
    recorder: Recorder
    found: dict[str, TypeProto] = field(default_factory=dict)
    recorded: list[str] = field(default_factory=list)

    def believe(self) -> None:
        """Let what the user says of types stand above what the file declares.

        Raises:
            NameNotFound: OB303 for a value that is not there.
        """
        for name, kind in self.request.value_types.items():
            home = home_of(self.cut.view, name)
            if home is None:
                raise not_found("value", name, self.cut.view.values())
            home.types[name] = kind

    def of_inputs(self, names: Sequence[str]) -> None:
        """Find the types of what the piece starts from.

        Raises:
            AnswerIsNo: OB102 for those of which nobody tells.
        """
        view = self.cut.view
        lacking = self._lacking(names)
        if lacking and view.parent is None:
            lacking = self._infer(lacking)
        if lacking:
            shapes = self._propagate(self.model).of(view)
            lacking = self._take(lacking, {name: shapes.type(name) for name in lacking}, shapes.made_up)
        lacking = self._record(lacking)
        if lacking:
            self._refuse([*lacking, *(n for n in self._lacking(self.cut.outputs) if self._is_unheard(n))])

    def of_outputs(self, piece: Piece) -> bool:
        """Find the types of what a piece returns, and declare them in it.

        Returns:
            Whether strict inference has gone through the piece on the way, as the full check would ask it to.

        Raises:
            AnswerIsNo: OB102 for those of which nobody tells.
        """
        graph = piece.model.proto.graph
        lacking = [value.name for value in graph.output if not is_complete(value.type)]
        if not lacking:
            return False
        _declare(graph, self.request.value_types)
        light = lightened(piece.model)
        strict = self._infer_in(light, strict=True)
        told = strict if strict is not None else self._infer_in(light, strict=False)
        lacking = self._take(lacking, told or {})
        if lacking:
            shapes = self._propagate(piece.model)
            lacking = self._take(lacking, {name: shapes.type(name) for name in lacking}, shapes.made_up)
        lacking = self._record(lacking)
        if lacking:
            self._refuse(lacking)
        for value in graph.output:
            if value.name in self.found:
                value.type.CopyFrom(self.found[value.name])
        return strict is not None

    def _lacking(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if (kind := self._told(name)) is None or not is_complete(kind)]

    def _told(self, name: str) -> TypeProto | None:
        home = home_of(self.cut.view, name)
        return None if home is None else Types(home, self.found, {}, static=False).of(name)

    def _take(
        self, lacking: Sequence[str], types: Mapping[str, TypeProto | None], made_up: Collection[str] = ()
    ) -> list[str]:
        """Keep what is complete, without symbols that inference made up; what is still lacking."""
        for name in lacking:
            kind = types.get(name)
            if kind is not None and is_complete(kind):
                self.found[name] = _without(kind, made_up)
        return [name for name in lacking if name not in self.found]

    def _infer(self, lacking: Sequence[str]) -> list[str]:
        """Ask onnx's inference of what comes before the cut; the rest of a large model would cost time only."""
        view = self.cut.view
        before, _ = trace(view, lacking, ())
        if not before:
            return list(lacking)
        piece = carve(self.model, view, before, {}, outputs=list(lacking))
        _declare(piece.model.proto.graph, self.request.value_types)
        return self._take(lacking, self._infer_in(piece.model, strict=False) or {})

    def _infer_in(self, model: Model, *, strict: bool) -> dict[str, TypeProto] | None:
        limits = self.request.limits
        return infer_outputs(model, strict=strict, timeout=self.request.inference_time, memory=limits.memory)

    def _propagate(self, model: Model) -> Shapes:
        from onnxbench.core.shapes import propagate

        limits = self.request.limits
        return propagate(model, timeout=self.request.inference_time, memory=limits.memory)

    def _record(self, lacking: Sequence[str]) -> list[str]:
        if not lacking:
            return []
        values = self.recorder.values(self.cut.view, lacking)
        left = self._take(lacking, {n: type_of(values[n], static=False) for n in lacking if n in values})
        self.recorded += [name for name in lacking if name not in left]
        return left

    def _is_unheard(self, name: str) -> bool:
        """Whether inference cannot tell what makes a value, even once all inputs have types."""
        node = self.cut.view.producer.get(name)
        if node is None or call_key(node.proto) in self.cut.view.functions:
            return False
        return not onnx.defs.has(node.proto.op_type, plain_domain(node.proto.domain))

    def _refuse(self, names: Sequence[str]) -> None:
        names = list(dict.fromkeys(names))
        listed = ", ".join(map(quote, names[:20])) + (" and more" if len(names) > 20 else "")
        why = f": {self.recorder.why}" if self.recorder.why else ""
        word = "the type" if len(names) == 1 else "the types"
        raise AnswerIsNo(
            "OB102",
            f"nobody tells {word} of {listed}: not declared, not inferred, and no run shows it{escape(why)}",
            hint=" ".join(f"--value-type {shlex.quote(f'{name}=float32[1,3]')}" for name in names[:20]),
        )


def _without(kind: TypeProto, made_up: Collection[str]) -> TypeProto:
    """A type whose sizes say nothing where all that they say is a name that inference made up: onnx's are `unk__0`."""
    made = TypeProto()
    made.CopyFrom(kind)
    for dim in dims_in(made) or ():
        words = re.findall(r"\w+", dim.dim_param)
        if any(word in made_up or re.fullmatch(r"unk__\d+", word) for word in words):
            dim.Clear()
    return made


def _declare(graph: GraphProto, types: Mapping[str, TypeProto]) -> None:
    """Declare types of inner values of a graph, in place of those that it declares."""
    if not types:
        return
    made = {name for node in graph.node for name in node.output} - {value.name for value in graph.output}
    ours = {name: kind for name, kind in types.items() if name in made}
    if not ours:
        return
    kept = [value for value in graph.value_info if value.name not in ours]
    kept += [value_info(name, kind) for name, kind in ours.items()]
    copies = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in kept]
    del graph.value_info[:]
    graph.value_info.extend(copies)
