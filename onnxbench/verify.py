"""Verify that one model computes what another does, by running both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from onnx import NodeProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.compare import Difference, Tolerance, differ_all
from onnxbench.core.dims import runs
from onnxbench.core.feeds import fed_inputs, generate
from onnxbench.core.graph import FunctionKey, GraphView, call_key, draws
from onnxbench.core.model import Model
from onnxbench.core.sizes import dims_in
from onnxbench.core.values import Value, is_float
from onnxbench.core.weights import array
from onnxbench.errors import BenchError
from onnxbench.runtimes.base import Limits, Runtime
from onnxbench.runtimes.find import find

State = Literal["verified", "unverified", "mismatch"]
Feeds = Mapping[str, Value]

#: Sizes that free symbols get, one run after the other; the first is what `generate` chooses. The later ones are for
#: models that refuse small ones. Nothing at all is an input too, if the model takes it.
_SIZES = (None, 1, 5, 0, 64, 576)
#: Inputs that are tried once a run has succeeded; more only add time.
_ENOUGH = 4
#: Bytes of weights above which a model is not run as a whole.
LARGEST = 1 << 30
#: Nodes above which making its sessions takes longer than everything else.
MOST_NODES = 10_000


@dataclass(slots=True)
class Verdict:
    """What came of it.

    Attributes:
        state: "verified" if both gave the same in every run, "mismatch" if they did not once.
        reason: why not verified, in a sentence.
        runs: how often both were run and compared.
        differences: of the first run that differs.
        moved: whether any output ever changed while inputs of one shape did; true if that was not tried.
    """

    state: State
    reason: str = ""
    runs: int = 0
    differences: Sequence[Difference] = field(default_factory=list)
    moved: bool = True


def verify(
    before: Model,
    after: Model,
    feed_sets: Iterable[Feeds],
    *,
    runtimes: Sequence[Runtime] | None = None,
    tolerance: Tolerance | None = None,
    limits: Limits | None = None,
    needs_kernels: bool = True,
) -> Verdict:
    """Run two models of the same interface on the same inputs.

    Inputs that no runtime runs the first model on are left out. What only the first can run is a mismatch.

    Args:
        before: the model that is right.
        after: the one that should be like it.
        feed_sets: inputs, one run each.
        runtimes: the first that runs `before` runs both; ONNX Runtime without optimizations, then the reference.
        tolerance: what may differ.
        limits: of each run.
        needs_kernels: whether a result that the runtime has no kernels for is a mismatch, or only not verified.
    """
    runtimes = runtimes if runtimes is not None else [find("onnxruntime:opt=disable"), find("reference")]
    tolerance, limits = tolerance or Tolerance(), limits or Limits()
    verdict = Verdict("unverified", "no runtime runs the model on made-up inputs")
    drawn = drawn_outputs(before)
    seen: list[Mapping[str, Value]] = []
    for number, feeds in enumerate(feed_sets):
        if seen and number >= _ENOUGH:
            break
        ran = _first_that_runs(before, feeds, runtimes, limits)
        if isinstance(ran, str):
            if not seen:
                verdict.reason = ran
            continue
        runtime, want = ran
        outcome = runtime.run(after, feeds, limits=limits)
        verdict.runs += 1
        if outcome.kind == "unsupported" and not needs_kernels:
            return Verdict("unverified", f"the result {outcome.sentence()} on {runtime}", verdict.runs)
        if not outcome.ok:
            return Verdict("mismatch", f"the result {outcome.sentence()} on {runtime}", verdict.runs)
        differences = [d for d in differ_all(want, outcome.outputs, tolerance) if d.name not in drawn]
        if differences:
            again = runtime.run(before, feeds, limits=limits)
            if not again.ok or differ_all(want, again.outputs, tolerance):
                return Verdict("unverified", "its outputs differ from run to run", verdict.runs)
            return Verdict("mismatch", differences[0].sentence(), verdict.runs, differences)
        seen.append(want)
    if not seen:
        return verdict
    if drawn:
        some = ", ".join(sorted(drawn)[:3])
        return Verdict("unverified", f"what it draws at random was not compared: {some}", verdict.runs)
    if not any(seen):
        return Verdict("unverified", "it has no outputs", verdict.runs)
    if all(is_void(outputs) for outputs in seen):
        return Verdict("unverified", "every output is empty or NaN on made-up inputs", verdict.runs)
    return Verdict("verified", "", verdict.runs, moved=has_moved(seen))


def has_moved(seen: Sequence[Mapping[str, Value]]) -> bool:
    """Whether runs of one output shape gave more than one answer; true if there was only one of them."""
    by_shape: dict[str, set[bytes]] = {}
    for outputs in seen:
        tensors = [value for value in outputs.values() if isinstance(value, np.ndarray)]
        shapes = str(_shapes(outputs))
        by_shape.setdefault(shapes, set()).add(b"".join(_bytes(value) for value in tensors))
    runs = {shapes: sum(str(_shapes(outputs)) == shapes for outputs in seen) for shapes in by_shape}
    tried = [shapes for shapes, count in runs.items() if count > 1]
    return not tried or any(len(by_shape[shapes]) > 1 for shapes in tried)


def _shapes(outputs: Mapping[str, Value]) -> list[tuple[int, ...]]:
    return [value.shape for value in outputs.values() if isinstance(value, np.ndarray)]


def _bytes(value: np.ndarray[Any, Any]) -> bytes:
    return repr(value.tolist()).encode() if value.dtype == object else value.tobytes()


def drawn_outputs(model: Model) -> frozenset[str]:
    """The outputs that depend on what the model draws at random, in bodies and functions too."""
    view = GraphView(model.proto, model.proto.graph)
    drawn: set[str] = set()
    known: dict[FunctionKey, bool] = {}
    for node in view.order:
        if any(name in drawn for name in node.inputs) or _draws(view, node.proto, known):
            drawn.update(name for name in node.outputs if name)
    return frozenset(name for name in view.outputs if name in drawn)


def _draws(view: GraphView, node: NodeProto, known: dict[FunctionKey, bool]) -> bool:
    key = call_key(node)
    if key in view.functions:
        if key not in known:
            known[key] = False
            known[key] = any(_draws(view, inner, known) for inner in view.functions[key].node)
        return known[key]
    return draws(node) or any(_draws(view, inner, known) for _, body in subgraphs(node) for inner in body.node)


def _first_that_runs(
    model: Model, feeds: Feeds, runtimes: Sequence[Runtime], limits: Limits
) -> tuple[Runtime, Mapping[str, Value]] | str:
    reason = "no runtime was asked"
    for runtime in runtimes:
        outcome = runtime.run(model, feeds, limits=limits)
        if outcome.ok:
            return runtime, outcome.outputs
        if reason == "no runtime was asked":
            reason = f"the model {outcome.sentence()} on {runtime}"
    return reason


def is_void(outputs: Mapping[str, Value]) -> bool:
    """Whether outputs say nothing: all are empty, or nothing but NaN."""
    for value in outputs.values():
        if not isinstance(value, np.ndarray):
            return False
        if value.size and not (is_float(value.dtype) and bool(np.isnan(value.astype(np.float64)).all())):
            return False
    return True


def feed_sets(
    model: Model,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, Sequence[int]] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    seed: int = 0,
) -> Iterator[Feeds]:
    """Inputs to verify with: of several sizes where the model leaves sizes open, and with defaults overridden once.

    Args:
        model: whose inputs they are.
        shapes: of inputs, by name.
        dims: sizes of symbols by name, one for each run; symbols that are left out get some.
        ranges: bounds of inputs, by name.
        seed: of the numbers.
    """
    view = GraphView(model.proto, model.proto.graph)
    free = [name for name in _symbols(view) if name not in (dims or {})]
    nameless = _nameless(view, shapes or {})
    tries = _SIZES if free or nameless else _SIZES[:1]
    given = runs(dims or {})
    overridden = _overridden(model, view)
    if overridden:
        with contextlib.suppress(BenchError):
            yield {**generate(view, seed=seed, shapes=shapes, dims=given[0], ranges=ranges), **overridden}
    for number in range(max(len(tries), len(given))):
        size = tries[min(number, len(tries) - 1)]
        sizes = {**(dict.fromkeys(free, size) if size is not None else {}), **given[min(number, len(given) - 1)]}
        with contextlib.suppress(BenchError):
            wanted = {**(_sized(nameless, size) if size is not None else {}), **(shapes or {})}
            yield generate(view, seed=seed + number, shapes=wanted, dims=sizes, ranges=ranges)


def _symbols(view: GraphView) -> list[str]:
    """Symbols of the inputs, those that are calculated from others left out."""
    found = (dim.dim_param for kind in fed_inputs(view).values() for dim in dims_in(kind) or ())
    return [name for name in dict.fromkeys(found) if name.isidentifier()]


def _nameless(view: GraphView, shapes: Mapping[str, Sequence[int]]) -> dict[str, list[int | None]]:
    """Dims of inputs that have some without a name and none that is a symbol, None for the nameless."""
    found: dict[str, list[int | None]] = {}
    for name, kind in fed_inputs(view).items():
        dims = dims_in(kind)
        if dims is None or name in shapes or any(dim.dim_param for dim in dims):
            continue
        sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in dims]
        if None in sizes:
            found[name] = sizes
    return found


def _sized(nameless: Mapping[str, Sequence[int | None]], size: int) -> dict[str, list[int]]:
    return {name: [size if dim is None else dim for dim in dims] for name, dims in nameless.items()}


def _overridden(model: Model, view: GraphView) -> dict[str, Value]:
    """Other values for the initializers that a caller may override."""
    found: dict[str, Value] = {}
    for name, tensor in view.initializers.items():
        if view.is_overridable(name):
            value = array(model, tensor)
            if value.dtype.kind == "f":
                found[name] = np.asarray(value * 1.25 + 0.5, value.dtype)
    return found
