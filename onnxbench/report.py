"""What services return: plain data with `to_dict()` and an `exit_code`; somebody else prints it."""

from typing import Any, Protocol


class Report(Protocol):
    """The result of one command on one model."""

    @property
    def exit_code(self) -> int:
        """What the process returns."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe data with a `schema` field."""
