"""Temporary folders: gone after use, gone after a kill, and nobody else's are touched."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from onnxbench.core import scratch
from onnxbench.core.scratch import TEMPORARY, Scratch
from onnxbench.errors import MachineError

HOLD = """import sys, time
from pathlib import Path
from onnxbench.core.scratch import Scratch
held = Scratch.within(Path(sys.argv[1]), sys.argv[2])
(held.path / "values.bin").write_bytes(b"gigabytes")
print(held.path.name, flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that has a folder: its name, and a way to kill it."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), TEMPORARY], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
        process.kill()


@pytest.fixture(autouse=True)
def fresh():
    scratch._sweep.cache_clear()


def test_a_folder_lasts_as_long_as_the_block(tmp_path):
    with Scratch.within(tmp_path, TEMPORARY) as made:
        (made.path / "file").write_text("x")
        assert [path.name for path in tmp_path.iterdir()] == [made.path.name]
    assert not list(tmp_path.iterdir())


def test_the_next_one_clears_what_a_killed_process_left(tmp_path, holder):
    name, process = holder
    with Scratch.within(tmp_path, TEMPORARY):
        assert (tmp_path / name / "values.bin").exists(), "its owner lives"
    process.send_signal(signal.SIGKILL)
    process.wait()
    scratch._sweep.cache_clear()
    with Scratch.within(tmp_path, TEMPORARY):
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("kind", ["link", "other name", "other mode", "file", "other prefix"])
def test_what_is_not_surely_ours_stays(tmp_path, kind):
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o700)
    (precious / "thesis").write_text("x")
    place = tmp_path / f"{TEMPORARY}abcd_123"
    if kind == "link":
        place.symlink_to(precious)
    elif kind == "file":
        place.write_text("x")
    elif kind == "other mode":
        place.mkdir(mode=0o755)
    else:
        place = tmp_path / (f"{TEMPORARY}results-of-may" if kind == "other name" else "onnxbench-abcd_123")
        place.mkdir(mode=0o700)
    with Scratch.within(tmp_path, TEMPORARY):
        assert os.path.lexists(place)
        assert (precious / "thesis").exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can make folders of others")
def test_folders_of_other_users_stay(tmp_path):
    place = tmp_path / f"{TEMPORARY}abcd_123"
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)
    with Scratch.within(tmp_path, TEMPORARY):
        assert place.exists()


def test_no_place_for_temporary_files_is_an_error_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(MachineError) as caught:
        Scratch.temporary()
    assert caught.value.code == "OB402"
    assert Path("gone").name in caught.value.message
