"""Who is right, when nobody says."""

from __future__ import annotations

from onnxbench.runtimes.base import Runtime
from onnxbench.runtimes.find import find


def trusted_by_default(suspect: Runtime) -> list[Runtime]:
    """The suspect without optimizations if it has such a mode, ONNX Runtime without them, then the reference evaluator.

    Most trusted first, the suspect itself left out. The reference comes last: it is wrong for some operators before opset 13.
    """
    plain = suspect.plain()
    listed = [*([plain] if plain is not None else []), find("onnxruntime:opt=disable"), find("reference")]
    return list({str(runtime): runtime for runtime in listed if str(runtime) != str(suspect)}.values())
