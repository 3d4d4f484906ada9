"""Help and import cost next to nothing: the heavy packages wait until a model is there."""

import json
import subprocess
import sys

import pytest

HEAVY = {"onnx", "numpy", "onnxruntime", "polygraphy", "onnx_graphsurgeon", "google.protobuf", "ml_dtypes"}

_RUN = """
import json, runpy, sys
sys.argv = json.loads(sys.argv[1])
try:
    {action}
except SystemExit as end:
    assert not end.code, end.code
print("\\n" + json.dumps(sorted(sys.modules)))
"""


def modules_after(action: str, *argv: str) -> set[str]:
    """The modules that a fresh interpreter holds after doing something."""
    command = [sys.executable, "-c", _RUN.format(action=action), json.dumps(["onnxbench", *argv])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["reduce", "--help"], ["runtimes", "--help"]])
def test_help_loads_nothing_heavy(argv):
    assert not HEAVY & modules_after("import onnxbench.cli; onnxbench.cli.main()", *argv)


def test_the_module_form_is_as_light():
    assert not HEAVY & modules_after("runpy.run_module('onnxbench', run_name='__main__', alter_sys=True)", "--help")


def test_importing_the_package_loads_none_of_its_modules():
    found = modules_after("import onnxbench")
    assert not HEAVY & found
    assert {name for name in found if name.startswith("onnxbench")} == {"onnxbench"}
