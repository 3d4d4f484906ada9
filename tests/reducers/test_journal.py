"""The file of verdicts: what a full disk does to it, and how long it stays."""

import errno
import os

import pytest

from onnxbench.errors import MachineError
from onnxbench.reducers.journal import Journal


class FullDisk:
    """A file that takes no more."""

    def write(self, text):
        return len(text)

    def flush(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    close = flush


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "out.journal")
    made.open({}, resume=False)
    return made


def test_a_full_disk_is_named_and_can_be_left_behind(journal):
    journal._file = FullDisk()
    for act in (lambda: journal.note("key", "same"), journal.close):
        with pytest.raises(MachineError, match=r"disk is full.*out\.journal"):
            act()
    journal._file = FullDisk()
    journal.discard()
    assert not journal.path.exists()


def test_a_copy_leaves_what_resume_needs_until_the_bundle_is_there(journal, tmp_path):
    journal.note("key", "same")
    journal.copy(tmp_path / "journal.jsonl")
    assert journal.path.read_text() == (tmp_path / "journal.jsonl").read_text()
    journal.discard_empty()
    assert journal.path.exists(), "it holds a verdict"


def test_a_journal_without_verdicts_goes(journal):
    journal.discard_empty()
    assert not journal.path.exists()
