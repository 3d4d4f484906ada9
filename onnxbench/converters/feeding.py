"""What the user says of the inputs that conversions are verified with."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from onnxbench.core.feed_check import check
from onnxbench.core.feed_files import read
from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model
from onnxbench.verify import Feeds, feed_sets


@dataclass(frozen=True, slots=True)
class Feeding:
    """Values from a file, or what made-up ones look like; names that a model does not have are not for it.

    Attributes:
        inputs: a file, a folder or a script; made up if there is none.
        shapes: of inputs, by name.
        dims: sizes of symbols by name, one for each run.
        ranges: bounds of inputs, by name.
        seed: of the numbers.
    """

    inputs: str | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    seed: int = 0

    def of(self, model: Model) -> Iterable[Feeds]:
        """Inputs for each run of a model.

        Raises:
            UsageError: OB206 if the values of the file do not fit the model.
        """
        if self.inputs is not None:
            view = GraphView(model.proto, model.proto.graph)
            return [check(read(self.inputs, view), view)]
        return self._made_up(model)

    def _made_up(self, model: Model) -> Iterator[Feeds]:
        """Inputs of several sizes, and of another seed at the first of them: outputs should change with their inputs."""
        first, second = (
            iter(feed_sets(model, shapes=self.shapes, dims=self.dims, ranges=self.ranges, seed=seed))
            for seed in (self.seed, self.seed + 1000)
        )
        yield from itertools.islice(first, 1)
        yield from itertools.islice(second, 1)
        yield from first

    def among(self, model: Model) -> Feeding:
        """The same without names that this model does not have: for one model of many."""
        view = GraphView(model.proto, model.proto.graph)
        symbols = {
            dim.dim_param for info in view.inputs.values() for dim in info.type.tensor_type.shape.dim if dim.dim_param
        }
        return Feeding(
            self.inputs,
            {name: shape for name, shape in self.shapes.items() if name in view.inputs},
            {name: sizes for name, sizes in self.dims.items() if name in symbols},
            {name: bounds for name, bounds in self.ranges.items() if name in view.inputs},
            self.seed,
        )
