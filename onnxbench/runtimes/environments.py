"""Virtual environments with a given release of a runtime, made when they are first asked for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from onnxbench.errors import MachineError

_RELEASE = re.compile(r"\d+(\.\d+)+(rc\d+|\.dev\d+)?")
_SECONDS = 900.0


def environment(text: str, package: str, tell: Callable[[str], None]) -> str:
    """The folder of an environment: `text` itself, or, if it is a release such as 1.20.1, one that is kept in the cache.

    Raises:
        MachineError: OB401 if pip cannot install the release.
    """
    if not _RELEASE.fullmatch(text):
        return text
    place = cache_folder() / f"{package}-{text}"
    if not place.exists():
        tell(f"installing {package} {text} into {place}")
        _make(place, f"{package}=={text}")
    return str(place)


def cache_folder() -> Path:
    """Where environments are kept between runs: `$XDG_CACHE_HOME/onnxbench`, or `~/.cache/onnxbench`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "onnxbench"


def _make(place: Path, requirement: str) -> None:
    """Whole or not at all: `venv` writes its own path into files, so it is made in its place and removed if pip fails."""
    pin = ["numpy<2"] if _is_before_numpy_2(requirement) else []
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile() as log:
            for command in (
                [sys.executable, "-m", "venv", str(place)],
                [str(place / "bin" / "python"), "-m", "pip", "install", "-q", requirement, *pin],
            ):
                done = subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, timeout=_SECONDS)
                if done.returncode:
                    log.seek(0)
                    said = log.read().decode("utf-8", "replace").strip().splitlines()[-1:]
                    raise MachineError(
                        "OB401",
                        f"{requirement} cannot be installed: {' '.join(said)}",
                        hint=f"python3 -m venv DIR && DIR/bin/pip install {requirement}, and name DIR",
                    )
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(place, ignore_errors=True)
        raise MachineError("OB401", f"{requirement} cannot be installed: {error}") from None
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _is_before_numpy_2(requirement: str) -> bool:
    """Onnxruntime before 1.19 cannot be imported beside NumPy 2."""
    found = re.fullmatch(r"onnxruntime==1\.(\d+)(\..*)?", requirement)
    return found is not None and int(found[1]) < 19
