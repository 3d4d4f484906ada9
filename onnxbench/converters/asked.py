"""What many conversions are asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from onnxbench.converters import digests
from onnxbench.converters.one import Job
from onnxbench.converters.tree import Item


@dataclass(frozen=True, slots=True)
class Asked:
    """What many conversions have in common.

    Attributes:
        job: of each model; source and output are filled in.
        exact: bring down what is above the target, wherever it was found.
        others: what becomes of models that are not converted, and of other files.
        from_: take only models that are at this opset.
        jobs: how many at a time.
    """

    job: Job
    exact: bool = False
    others: Literal["copy", "skip"] = "copy"
    from_: int | None = None
    jobs: int = 1

    def raises(self, item: Item) -> bool:
        """Whether a model that is above the target stays as it is."""
        return self.job.options.at_least or (item.searched and not self.exact)

    def digest(self, item: Item) -> str:
        """What tells this request from another for the same model; neither time nor memory change an answer."""
        options, feeding = self.job.options, self.job.feeding
        said = [
            *(sorted(options.targets.items()), self.raises(item), options.ir, options.ir_most, sorted(options.expand)),
            *(options.verify, options.whole, options.seed, options.limits.timeout),
            *(feeding.inputs, sorted(feeding.shapes.items()), sorted(feeding.dims.items())),
            *(
                sorted(feeding.ranges.items()),
                self.job.require_verified,
                self.job.allow_lossy,
                self.job.runtime,
                _versions(),
            ),
        ]
        return digests.of_data(said)


@cache
def _versions() -> list[str]:
    """Of what decides how a model is converted and verified."""
    from importlib.metadata import version

    from onnxbench import __version__

    return [__version__, version("onnx"), version("onnxruntime")]
