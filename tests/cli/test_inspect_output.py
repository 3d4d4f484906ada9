"""What `onnxbench inspect` says fits a terminal, and comes whole or not at all."""

import json
import os
import subprocess
import sys

import onnx
import pytest

from .conftest import HEALTHY, write

resource = pytest.importorskip("resource")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("option", ["--json", "--text", "--all"])
def test_a_report_that_does_not_fit_is_no_success(healthy, option, unbuffered, tmp_path):
    """CPython loses the rest of a short write if PYTHONUNBUFFERED is set, as images of containers do."""
    out = tmp_path / "out"
    with out.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "onnxbench", "inspect", healthy, option],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered, "TMPDIR": str(tmp_path)},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60)),
        )
    assert done.returncode == 4, done.stderr
    assert "error[OB402]" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_difference_of_long_texts_is_cut_for_people_only(bench, healthy, tmp_path):
    other = write(tmp_path / "other.onnx", HEALTHY)
    model = onnx.load(other)
    model.metadata_props.add(key="vocabulary", value="word " * 1000)
    onnx.save(model, other)
    shown = bench("inspect", healthy, "--diff", other).stdout
    assert "(5000 characters, see --json) -> nothing" in bench("inspect", other, "--diff", healthy).stdout
    assert "nothing -> word word" in shown
    assert len(shown) < 1000
    said = json.loads(bench("inspect", healthy, "--diff", other, "--json").stdout)
    assert len(said["head"][0]["after"]) == 5000


def test_the_verdict_on_a_folder_names_the_first_model(bench, tmp_path):
    write(tmp_path / "a.onnx", HEALTHY)
    (tmp_path / "b.onnx").write_bytes(b"")
    done = bench("inspect", "a.onnx", "b.onnx")
    assert done.stderr == "error[OB305]: 1 of 2 models are invalid, or cannot be read, first b.onnx\n"
