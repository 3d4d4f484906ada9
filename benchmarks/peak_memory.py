"""Resident memory of a process and all its descendants. Linux only."""

from pathlib import Path


def family(pid: int) -> list[int]:
    found, pending = [], [pid]
    while pending:
        parent = pending.pop()
        found.append(parent)
        try:
            tasks = Path(f"/proc/{parent}/task").iterdir()
            pending += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def resident(pid: int) -> int:
    """Bytes, pages that processes share counted once (Pss)."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
