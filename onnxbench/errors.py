"""The errors a user can meet: each with a code, one sentence, a hint that can be run, and an exit code.

The first digit of a code is the exit code of the command that ends with it (6 stands for 128 and
the number of the signal, 7 for 70, a bug of ours).
"""

import unicodedata
from typing import ClassVar

#: Every code, and what it says. `docs/errors.md` lists the same; a test compares them.
CODES: dict[str, str] = {
    "OB101": "the failure does not reproduce",
    "OB102": "the cut was refused: no valid model can be made of it",
    "OB104": "the chosen nodes alone do not fail",
    "OB105": "a problem was found that --fail-on names",
    "OB106": "the models differ",
    "OB107": "the conversion was refused: nothing of the target opset is known to mean the same",
    "OB108": "the conversion of a model crashed, or went over its time or memory",
    "OB201": "wrong usage of an option or argument",
    "OB202": "the output exists already",
    "OB203": "the format would lose something",
    "OB204": "a selection cannot be read",
    "OB205": "a runtime's name or option cannot be read",
    "OB206": "the inputs do not fit the model",
    "OB207": "there is no journal to go on with, or it is of another reduction",
    "OB301": "no such file, or not a file",
    "OB302": "not a readable model",
    "OB303": "no such name in the model",
    "OB304": "external data is missing, out of range, or outside the model's folder",
    "OB305": "the graph is invalid",
    "OB306": "a tensor is invalid",
    "OB307": "the inputs cannot be read or generated",
    "OB308": "no runtime runs the model, so there is nothing to compare with",
    "OB401": "the runtime is not installed",
    "OB402": "the disk is full or not writable",
    "OB403": "a worker process could not start",
    "OB404": "out of memory",
    "OB405": "a check cannot start, or cannot tell",
    "OB501": "the result did not verify, and nothing was written",
    "OB701": "a bug of onnxbench",
    "OB801": "interrupted before there was a result",
}


def quote(name: str) -> str:
    """`name` in quotes, with control and formatting characters escaped so that no terminal obeys them."""
    return f"'{escape(name)}'"


def escape(text: str) -> str:
    """`text` with control, formatting and unassigned characters written as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if unicodedata.category(character)[0] == "C":
        return character.encode("unicode_escape", "backslashreplace").decode("ascii")
    return character


class BenchError(Exception):
    """What every command may end with.

    Attributes:
        code: a key of `CODES`; it never changes its meaning.
        message: one sentence that names the model, and the node where there is one.
        hint: what to do or to type next; may be empty.
        exit_code: what the process returns.
    """

    exit_code: ClassVar[int]

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        assert code in CODES, f"{code} is not in the catalogue"
        assert str(self.exit_code).startswith(code[2]), f"{code} is not a code of {type(self).__name__}"
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint

    def to_dict(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message, "hint": self.hint}

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.message, self.hint)


def _rebuild(kind: type[BenchError], code: str, message: str, hint: str) -> BenchError:
    return kind(code, message, hint=hint)


class AnswerIsNo(BenchError):
    """The command ran and its answer is no: they differ, it does not reproduce, a cut was refused."""

    exit_code = 1


class UsageError(BenchError):
    """The command line or the configuration is wrong, or the output exists."""

    exit_code = 2


class ModelError(BenchError):
    """The model or its input is absent, unreadable or invalid."""

    exit_code = 3


class NameNotFound(ModelError):
    """A node, value or operator that was asked for is not in the model."""


class MachineError(BenchError):
    """The machine cannot do it: a runtime is missing, the disk is full, memory has run out."""

    exit_code = 4


class SafetyStop(BenchError):
    """The result did not verify, so nothing was written."""

    exit_code = 5
