"""The names of sizes: how a model's are read, how new ones are made, and what turned out to be equal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onnxbench.core.shape_rules.facts import Dim
from onnxbench.core.size_text import parse
from onnxbench.core.symbolic import Expr, Size, evaluate, lone, substitute, symbol

Path = tuple[tuple[int, str], ...]  # node and attribute of each body on the way from the main graph
_HYPHENATED = re.compile(r"[A-Za-z_]\w*(-[A-Za-z_]\w*)+")


@dataclass(slots=True)
class Symbols:
    """All names of sizes in one model.

    Attributes:
        texts: every dim_param that the file declares.
        values: sizes that the user fixes, by dim_param.
        given: the symbols that inputs bind.
        owner: the body in which a symbol that no input binds was met first.
        made: the symbols that we made up.
        fed: those of them that inputs bind: dims that the file leaves without a name.
        bindings: what symbols turned out to be.
        learnt: how often that has changed.
        unreliable: declared symbols that stand for different sizes at once.
        seen: expressions that are the size of some dim.
        here: the body that is walked, for what may be concluded from it.
        conditional: bodies that may not run, or more than once.
    """

    texts: frozenset[str]
    values: Mapping[str, int]
    unreliable: set[str]
    given: set[str] = field(default_factory=set)
    owner: dict[str, Path] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    fed: frozenset[str] = frozenset()
    bindings: dict[str, Size] = field(default_factory=dict)
    learnt: int = 0
    seen: set[Size] = field(default_factory=set)
    here: Path = ()
    conditional: set[Path] = field(default_factory=set)
    _read: dict[str, Dim] = field(default_factory=dict)
    _names: dict[tuple[Path, str, int], Expr] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _resolved: dict[Expr, Size] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._taken = {name for text in self.texts for name in re.findall(r"\w+", text)}

    def read(self, text: str) -> Dim:
        """The size that a dim_param says; None for one that names nothing ("?", "-1")."""
        if text not in self._read:
            self._read[text] = self._parse(text)
        return self._read[text]

    def _parse(self, text: str) -> Dim:
        if text in self.values:
            return self.values[text]
        if not re.search(r"[^\W\d]", text) or text in self.unreliable:
            return None
        whole = _HYPHENATED.fullmatch(text) is not None and not all(part in self.texts for part in text.split("-"))
        size = None if whole else parse(text)
        is_name = text.isidentifier() or text.strip()[:1] in ("'", '"')  # quotes mean something in expressions only
        if size is None or (is_name and lone(size) not in ("", text)):
            return symbol(text)
        size = evaluate(size, self.values)
        if isinstance(size, Expr) and any(name in self.unreliable for name in size.symbols):
            return None
        return size

    def read_in(self, path: Path, text: str) -> Dim:
        """The size that a dim_param says in the main graph or a body; None where another graph has that name too.

        Names of sizes are scoped to the values of one graph (IR.md, names within a graph): the N of a loop's body may be
        another in each round, whatever the main graph calls N.
        """
        size = self.read(text)
        if not isinstance(size, Expr):
            return size
        ours = all(not path if name in self.given else self.owner.get(name, path) == path for name in size.symbols)
        return size if ours else None

    def fresh(self, path: Path, name: str, axis: int) -> Expr:
        """A new symbol for an axis of a value; the same one if asked again."""
        key = (path, name, axis)
        if key not in self._names:
            stem = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "value"
            stem = f"v{stem}" if stem[0].isdigit() else stem
            text, number = f"{stem}_d{axis}", 2
            while text in self._taken:
                text, number = f"{stem}_d{axis}_{number}", number + 1
            self._taken.add(text)
            self._names[key] = symbol(text)
            self.made.add(text)
            self.owner[text] = path
        return self._names[key]

    def adopt(self, size: Size) -> None:
        """Note where a symbol that no input binds was met first."""
        if isinstance(size, Expr):
            for name in size.symbols:
                if name not in self.given:
                    self.owner.setdefault(name, self.here)

    def resolve(self, size: Dim) -> Dim:
        """The size with all that is known of its symbols."""
        if not self.bindings or not isinstance(size, Expr):
            return size
        found = self._resolved.get(size)
        if found is None:
            found = size
            while isinstance(found, Expr) and any(name in self.bindings for name in found.symbols):
                found = substitute(found, self.bindings)
            self._resolved[size] = found
        return found

    def bind(self, name: str, size: Size) -> bool:
        """Let a symbol be a size from now on; False if that would be a circle."""
        size_now = self.resolve(size)
        assert size_now is not None
        if isinstance(size_now, Expr) and name in size_now.symbols:
            return False
        self.bindings[name] = size_now
        self._forget()
        return True

    def restore(self, bindings: Mapping[str, Size]) -> None:
        self.bindings = dict(bindings)
        self._forget()

    def _forget(self) -> None:
        self._resolved.clear()
        self.learnt += 1

    def must_equal(self, one: Size, other: Size) -> Size:
        """The better known of two sizes that are equal in every run that gets here."""
        left, right = self.resolve(one), self.resolve(other)
        assert left is not None
        assert right is not None
        if left == right:
            return left
        for symbolic, better in ((left, right), (right, left)):
            name = lone(symbolic)
            if name in self.made and self._may_conclude(name) and self.bind(name, better):
                return better
        return right if isinstance(right, int) and not isinstance(left, int) else left

    def _may_conclude(self, name: str) -> bool:
        """Whether what holds here holds wherever the symbol is used."""
        path = self.here
        while path != self.owner[name]:
            if not path or path in self.conditional:
                return False
            path = path[:-1]
        return True

    def is_local(self, size: Dim, path: Path) -> bool:
        """Whether a size is one of a body: it may be another in the next round."""
        names: Iterable[str] = size.symbols if isinstance(size, Expr) else ()
        return any(self.owner.get(name, ())[: len(path)] == path for name in names) if path else False
