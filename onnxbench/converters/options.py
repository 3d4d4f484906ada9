"""What a conversion is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxbench.runtimes.base import Limits


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """What a conversion is asked to do, and may cost.

    Attributes:
        targets: opset version by domain ("" is ai.onnx); domains that are left out stay as they are.
        at_least: whether what is above the target stays as it is: a whole model, one of its domains, or a function.
        ir: IR version of the result; chosen if it is None.
        ir_most: the highest IR version that the result may have, if there is a bound.
        expand: operators that the function body in their specification takes the place of, whatever the opset.
        verify: whether the result is compared with its source at all.
        whole: whether whole models are run at any size.
        limits: of one run of a model.
        seed: of made-up inputs.
    """

    targets: Mapping[str, int] = field(default_factory=dict)
    at_least: bool = False
    ir: int | None = None
    ir_most: int | None = None
    expand: frozenset[str] = frozenset()
    verify: bool = True
    whole: bool = False
    limits: Limits = field(default_factory=Limits)
    seed: int = 0

    def end(self, domain: str, start: int) -> int:
        """Where a graph of one version of a domain goes."""
        target = self.targets.get(domain, start)
        return max(start, target) if self.at_least else target

    @property
    def inference_time(self) -> float | None:
        """Seconds that shape inference or the checker may take: a third of what a run may."""
        return None if self.limits.timeout is None else self.limits.timeout / 3
