"""Runtimes by the name a user types."""

import pytest

from onnxbench import registry
from onnxbench.errors import MachineError, UsageError
from onnxbench.runtimes import find as finding
from onnxbench.runtimes.base import Spec
from onnxbench.runtimes.find import find, parse_spec, survey


@pytest.mark.parametrize(
    "text, spec",
    [
        ("onnxruntime", Spec("onnxruntime")),
        ("onnxruntime:opt=disable,threads=1", Spec("onnxruntime", "", "opt=disable,threads=1")),
        ("onnxruntime@v120", Spec("onnxruntime", "v120")),
        ("onnxruntime@../a/b:opt=all", Spec("onnxruntime", "../a/b", "opt=all")),
        ("python:a/b.py:run", Spec("python", "", "a/b.py:run")),
        ("onnxruntime@C:\\venv:opt=all", Spec("onnxruntime", "C:\\venv", "opt=all")),
    ],
)
def test_specs_are_read_and_written(text, spec):
    assert parse_spec(text) == spec
    assert str(spec) == text


@pytest.mark.parametrize("text", ["", ":opt=all", "@venv"])
def test_a_name_is_needed(text):
    with pytest.raises(UsageError, match="names no runtime") as caught:
        find(text)
    assert caught.value.code == "OB205"


def test_a_near_miss_is_suggested():
    with pytest.raises(UsageError, match="'onnxruntme'") as caught:
        find("onnxruntme:opt=all")
    assert caught.value.code == "OB205"
    assert "did you mean onnxruntime?" in caught.value.hint


def test_without_a_near_miss_all_are_listed():
    with pytest.raises(UsageError) as caught:
        find("zzz")
    assert all(name in caught.value.hint for name in ("onnxruntime", "reference", "python"))


def test_control_characters_of_a_name_are_escaped():
    with pytest.raises(UsageError) as caught:
        find("reference:\x1b[31m")
    assert "\x1b" not in caught.value.message


def test_a_plug_in_that_cannot_be_imported_is_said(monkeypatch):
    def load():
        raise ImportError("no module named 'secret'")

    monkeypatch.setattr(registry, "names", lambda group: {"broken": load})
    with pytest.raises(MachineError, match="secret") as caught:
        find("broken")
    assert caught.value.code == "OB401"
    assert [(row.name, row.missing) for row in survey()] == [("broken", "cannot be imported: no module named 'secret'")]


def test_the_survey_names_what_is_here():
    rows = {row.name: row for row in survey()}
    assert {"onnxruntime", "reference", "python"} <= set(rows)
    assert rows["onnxruntime"].version
    assert not rows["reference"].missing
    assert finding.GROUP == "onnxbench.runtimes"
