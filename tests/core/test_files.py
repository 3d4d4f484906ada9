"""From names to files: nothing is left out without a word."""

import os

import pytest

from onnxbench.core.files import find_models, is_plural
from onnxbench.core.model import load
from onnxbench.errors import ModelError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """zoo/a.onnx, zoo/in/b.pb, data beside them, and links: to nothing, to itself, to the folder around."""
    monkeypatch.chdir(tmp_path)
    inner = tmp_path / "zoo" / "in"
    inner.mkdir(parents=True)
    for path in ("zoo/a.onnx", "zoo/in/b.pb", "zoo/in/input_0.pb", "zoo/notes.txt"):
        (tmp_path / path).write_bytes(b"")
    (inner / "gone.onnx").symlink_to("nowhere.onnx")
    (inner / "self.onnx").symlink_to("self.onnx")
    (inner / "around").symlink_to(tmp_path / "zoo", target_is_directory=True)
    return tmp_path


def test_a_folder_with_links_in_a_circle(folder):
    assert find_models(["zoo"]) == ["zoo/a.onnx", "zoo/in/b.pb", "zoo/in/gone.onnx", "zoo/in/self.onnx"]
    for name in ("gone", "self"):
        with pytest.raises(ModelError, match=r"is a link to .*, which is not there"):
            load(f"zoo/in/{name}.onnx")


def test_a_folder_that_cannot_be_read_is_named(folder, monkeypatch):
    scandir = os.scandir

    def refuse(path):
        if str(path).rstrip("/").endswith("in"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert find_models(["zoo"]) == ["zoo/a.onnx", "zoo/in"]
    with pytest.raises(ModelError, match="no permission to read in") as caught:
        load("zoo/in")
    assert caught.value.code == "OB301"


@pytest.mark.parametrize("named", [["zoo/empty"], ["zoo/*.nothing"]])
def test_a_folder_without_models_is_an_error(folder, named):
    (folder / "zoo" / "empty").mkdir()
    with pytest.raises(ModelError, match="no model in"):
        find_models(named)


def test_a_file_counts_once_however_it_is_spelt(folder):
    named = ["zoo/a.onnx", "./zoo/a.onnx", str(folder / "zoo" / "a.onnx"), "-", "-"]
    assert find_models(named) == ["zoo/a.onnx", "-"]


def test_an_empty_name_is_not_the_working_folder(folder):
    assert not is_plural([""])
    with pytest.raises(ModelError, match="the name of the model is empty"):
        load("")
