"""Memory of processes and of the machine."""

import os
from pathlib import Path


def resident(pid: int) -> int:
    """Bytes of anonymous memory that a process holds; 0 where the system does not tell (then caps do not bite)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def machine_memory() -> int:
    """Bytes of physical memory; the default cap is a share of it."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
