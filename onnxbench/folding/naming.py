"""Find names that nothing bears yet."""

from __future__ import annotations


def free_name(stem: str, taken: set[str]) -> str:
    """The stem, or with the first number that makes a free name of it; it is taken from now on."""
    number, name = 2, stem
    while name in taken:
        name, number = f"{stem}_{number}", number + 1
    taken.add(name)
    return name
