"""List the optimizers of ONNX Runtime releases, for `onnxbench/runtimes/optimizers.json`.

usage: python tools/optimizers.py PYTHON [PYTHON ...]

Each PYTHON is an interpreter with one release of onnxruntime. The release has no call that lists its optimizers, so names are
read from its library: text that looks like a name, and the classes that its type information names. A name too many does no
harm: ONNX Runtime ignores names that it does not know, and only an observed cure is ever reported.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "onnxbench" / "runtimes" / "optimizers.json"
ASK = "import onnxruntime, glob, os; print(onnxruntime.__version__); print(os.path.dirname(onnxruntime.__file__))"
TEXT = re.compile(rb"(?<=\x00)([A-Z][A-Za-z0-9_]{4,60})(?=\x00)")
CLASS = re.compile(rb"N11onnxruntime(?:3QDQ)?(\d+)([A-Z]\w+?)E\x00")
NAME = re.compile(
    r"(Fusion(L1|L2)?|Elimination|Transformer|Folding(DQ)?|Sharing|Optimizer|Remover|Rewrite|Propagation|Approximation"
    r"|Cleanup|BNSH|_Fusion)$|^(Eliminate|Fuse)[A-Z]"
)
#: Classes that optimizers are made of, and steps that a session cannot do without.
NONE = re.compile(
    r"OpDataPropagation$|^SaveShape|^Generate|^Apply|^Add[A-Z]|^FuseSubGraph|^GraphTransformer$|^MaybeTranspose"
)


def main() -> None:
    known = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    for interpreter in sys.argv[1:]:
        version, folder = subprocess.run(
            [interpreter, "-c", ASK], capture_output=True, text=True, check=True
        ).stdout.split()
        known[version] = sorted(names_in(next(Path(folder, "capi").glob("onnxruntime_pybind11_state*")).read_bytes()))
        print(version, len(known[version]))
    order = sorted(known, key=lambda text: [int(part) for part in re.findall(r"\d+", text)])
    TARGET.write_text(json.dumps({version: known[version] for version in order}, indent=1) + "\n")


def names_in(library: bytes) -> set[str]:
    """Names that may be an optimizer's."""
    texts = {found.group(1).decode() for found in TEXT.finditer(library)}
    for found in CLASS.finditer(library):
        length, name = int(found.group(1)), found.group(2).decode()
        if len(name) >= length:
            texts.add(name[:length])
    return {name for name in texts if NAME.search(name) and not NONE.search(name)}


if __name__ == "__main__":
    main()
