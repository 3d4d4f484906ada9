"""A draft takes its place whole, or leaves no trace."""

import errno
import os

import pytest

from onnxbench.core.atomic import Draft
from onnxbench.errors import MachineError


def write(folder, data, interruption=None):
    with Draft(folder) as draft:
        draft.write(data)
        if interruption is not None:
            raise interruption
        draft.publish(folder / "a.bin")


def test_a_published_draft_holds_all_bytes_and_nothing_else_is_left(tmp_path):
    with Draft(tmp_path) as draft:
        draft.write(b"one")
        draft.write(memoryview(b"two"))
        assert not (tmp_path / "a.bin").exists()
        draft.publish(tmp_path / "a.bin")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a.bin", b"onetwo")]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_interrupted_draft_is_removed_and_the_old_file_stays(tmp_path, interruption):
    (tmp_path / "a.bin").write_bytes(b"old")
    with pytest.raises(interruption):
        write(tmp_path, b"half", interruption)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a.bin", b"old")]


def test_a_draft_that_was_not_published_leaves_nothing(tmp_path):
    with Draft(tmp_path) as draft:
        draft.write(b"x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_an_error_of_the_machine(tmp_path, monkeypatch, call):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a.bin").write_bytes(b"old")
    monkeypatch.setattr(os, call, full)
    with pytest.raises(MachineError, match="disk is full") as caught:
        write(tmp_path, b"x")
    assert caught.value.code == "OB402"
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a.bin", b"old")]


def test_a_write_that_takes_less_than_given_is_continued(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    with Draft(tmp_path) as draft:
        draft.write(b"0123456789")
        draft.publish(tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == b"0123456789"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask for files")
def test_the_mode_follows_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with Draft(tmp_path) as draft:
            draft.publish(tmp_path / "a.bin")
    finally:
        os.umask(before)
    assert (tmp_path / "a.bin").stat().st_mode & 0o777 == 0o640


def test_a_name_as_long_as_names_can_be_is_writable(tmp_path):
    target = tmp_path / ("n" * 255)
    with Draft(tmp_path) as draft:
        draft.write(b"x")
        draft.publish(target)
    assert target.read_bytes() == b"x"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(MachineError, match="nowhere"), Draft(tmp_path / "nowhere"):
        pass


@pytest.mark.parametrize("call", ["open", "close"])
def test_an_interrupt_that_strikes_when_a_file_is_opened_or_closed_leaves_nothing(tmp_path, monkeypatch, call):
    real = getattr(os, call)

    def struck(*args):
        real(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, call, struck)
    with pytest.raises(KeyboardInterrupt), Draft(tmp_path):
        pass
    assert not list(tmp_path.iterdir())
