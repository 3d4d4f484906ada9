"""If before opset 11, whose branches give values of one shape.

Sources: ai.onnx If-1 ("must be of the same shape and same data type") and If-11 ("may produce tensors with ... different shapes").
"""

from __future__ import annotations

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.places import Places
from onnxbench.converters.site import Site
from onnxbench.core.symbolic import Size

_Dims = tuple["Size | None", ...]


def _of_one_shape(site: Site) -> None:
    """Shapes that no size of a symbol makes the same; of those that only a run tells, it is the model's own affair."""
    for output, one, other in _pairs(site):
        if _parts(one, other):
            shapes = f"{_shown(one)} and {_shown(other)}"
            site.refuse(f"its branches give {output} of shapes {shapes}, and before opset 11 they have to be the same")
    rules.keep(site)


def _pairs(site: Site) -> list[tuple[str, _Dims, _Dims]]:
    """Each output with its dims in both branches, at every place where the node is met and they are known."""
    found = []
    places = [scope.view.producer.get(site.output()) for scope in site.facts.scopes[:1]]
    for holder in filter(None, places):
        labels = ("then_branch", "else_branch")
        sides = [Places.body(site.facts, holder.index, label).walked for label in labels]
        graphs = [site.body(site.node, label) for label in labels]
        for scopes in zip(*sides, strict=False):
            for output, *values in zip(site.node.output, *(graph.output for graph in graphs), strict=False):
                one, other = (scope.shapes.dims(value.name) for scope, value in zip(scopes, values, strict=True))
                if one is not None and other is not None:
                    found.append((str(output), one, other))
    return found


def _parts(one: _Dims, other: _Dims) -> bool:
    if len(one) != len(other):
        return True
    return any(
        size is not None and twin is not None and _always_differ(size, twin)
        for size, twin in zip(one, other, strict=True)
    )


def _always_differ(size: Size, twin: Size) -> bool:
    """Whether no sizes of the symbols make them the same, but 0: one is less than the other by each product of symbols."""
    apart = size - twin
    if isinstance(apart, int):
        return apart != 0
    is_plain = all(isinstance(atom, str) for product in apart.terms for atom, _ in product)
    return is_plain and len({factor > 0 for factor in apart.terms.values()}) == 1


def _shown(dims: _Dims) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in dims)}]"


adapter("If", 11, 1)(_of_one_shape)
