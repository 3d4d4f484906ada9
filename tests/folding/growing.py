"""Random models: elementwise operators, shape arithmetic, branches, loops, functions, all sorts of initializers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Draw = Callable[..., object]

_UNARY = ["Neg", "Abs", "Identity", "Relu", "Sin", "Dropout", "Floor"]
_BINARY = ["Add", "Mul", "Sub", "Max"]
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Garden:
    """A graph that grows; all float values are [N, 4] or broadcast to that."""

    def __init__(self, draw: Draw, prefix: str = "", outer: Garden | None = None) -> None:
        self.draw, self.prefix, self.outer = draw, prefix, outer
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self.full: list[str] = list(outer.full) if outer else ["x"]
        self.rows: list[str] = list(outer.rows) if outer else []
        self.vectors: list[str] = list(outer.vectors) if outer else []
        self.inputs: list[object] = []
        self.count = 0
        self.depth: int = outer.depth + 1 if outer else 0

    def name(self) -> str:
        self.count += 1
        return f"{self.prefix}v{self.count}"

    def pick(self, names: list[str]) -> str:
        return self.draw(st.sampled_from(names))  # type: ignore[return-value]

    def add(self, op: str, inputs: list[str], **attributes: object) -> str:
        made = self.name()
        self.nodes.append(helper.make_node(op, inputs, [made], **attributes))
        return made

    def constant(self, value: np.ndarray) -> str:
        """As an initializer, a Constant, or one by its typed attribute."""
        made = self.name()
        match self.draw(st.integers(0, 2)):
            case 0:
                self.initializers.append(numpy_helper.from_array(value, made))
            case 1:
                self.nodes.append(helper.make_node("Constant", [], [made], value=numpy_helper.from_array(value)))
            case _ if value.ndim == 1:
                kind = "value_floats" if value.dtype.kind == "f" else "value_ints"
                self.nodes.append(helper.make_node("Constant", [], [made], **{kind: value.tolist()}))
            case _:
                self.initializers.append(numpy_helper.from_array(value, made))
        return made

    def row(self) -> str:
        numbers = self.draw(st.lists(st.integers(-3, 3), min_size=4, max_size=4))
        made = self.constant(np.array(numbers, np.float32))
        self.rows.append(made)
        return made

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))


def _elementwise(g: Garden) -> None:
    op = g.pick(_BINARY)
    g.full.append(g.add(op, [g.pick(g.full), g.pick(g.full + g.rows or g.full)]))


def _unary(g: Garden) -> None:
    g.full.append(g.add(g.pick(_UNARY), [g.pick(g.full)]))


def _constant_chain(g: Garden) -> None:
    a, b = g.row(), g.pick(g.rows)
    made = g.add(g.pick(_BINARY), [a, b])
    g.rows.append(g.add(g.pick(["Neg", "Identity", "Relu"]), [made]))


def _reshape(g: Garden) -> None:
    """There and back through sizes that are computed."""
    source = g.pick(g.full)
    size = g.add("Gather", [g.add("Shape", [g.pick(g.full)]), g.ints(0)])
    parts = [size, g.ints(2), g.ints(2)] if g.draw(st.booleans()) else [g.ints(2), size, g.ints(2)]
    middle = g.add("Reshape", [source, g.add("Concat", parts, axis=0)])
    back = g.add("Concat", [size, g.ints(4)], axis=0) if g.draw(st.booleans()) else g.ints(-1, 4)
    g.full.append(g.add("Reshape", [middle, back]))
    g.vectors.append(size)


def _expand(g: Garden) -> None:
    shape = g.add("Shape", [g.pick(g.full)])
    source = g.pick(g.rows) if g.rows and g.draw(st.booleans()) else g.pick(g.full)
    if g.draw(st.booleans()):
        shape = g.add("Max", [shape, g.ints(1, 1)]) if source in g.rows else shape
    made = g.add("Expand", [source, shape])
    g.full.append(g.add("Add", [g.pick(g.full), made]) if source not in g.full else made)


def _sizes(g: Garden) -> None:
    """Arithmetic with sizes that ends as a number in the data, or as the end of a slice."""
    size = g.add("Gather", [g.add("Shape", [g.pick(g.full)]), g.ints(g.draw(st.integers(0, 1)))])  # type: ignore[arg-type]
    for _ in range(g.draw(st.integers(0, 3))):  # type: ignore[arg-type]
        op = g.pick(["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min"])
        number = g.draw(st.sampled_from([1, 2, 3, 4, -2]))
        size = g.add(op, [size, g.ints(number)])  # type: ignore[arg-type]
    kind = g.draw(st.sampled_from([1, 6, 9, 11, 3]))
    g.full.append(
        g.add(
            "Add",
            [
                g.pick(g.full),
                g.add(
                    "Cast",
                    [
                        g.add("Cast", [size], to=kind),
                    ],
                    to=1,
                ),
            ],
        )
    )


def _idle(g: Garden) -> None:
    source = g.pick(g.full)
    match g.draw(st.integers(0, 5)):
        case 0:
            made = g.add("Transpose", [source], perm=[0, 1])
        case 1:
            made = g.add("Cast", [source], to=1)
        case 2:
            made = g.add("Slice", [source, g.ints(0), g.ints(g.draw(st.sampled_from([2**62, 4, 100]))), g.ints(1)])  # type: ignore[arg-type]
        case 3:
            made = g.add("Pad", [source, g.ints(0, 0, 0, 0)])
        case 4:
            made = g.add("Concat", [source], axis=1)
        case _:
            made = g.add("Reshape", [source, g.ints(-1, 4)])
    g.full.append(made)


def _swap(g: Garden) -> None:
    """A node twice, in another order of nodes."""
    source, other = g.pick(g.full), g.pick(g.full)
    first, second = g.add("Mul", [source, other]), g.add("Mul", [source, other])
    g.full.append(g.add("Sub", [first, g.add("Identity", [second])]))


def _branch(g: Garden) -> None:
    condition = g.draw(st.integers(0, 2))
    if condition == 2:
        total = g.add("ReduceSum", [g.pick(g.full)], keepdims=0)
        truth = g.add("Less", [total, g.constant(np.array(0.5, np.float32))])
    else:
        truth = g.constant(np.array(bool(condition)))
    bodies = {label: _body(g, f"{g.prefix}{label[0]}_") for label in ("then_branch", "else_branch")}
    g.full.append(g.add("If", [truth], **bodies))


def _body(g: Garden, prefix: str) -> object:
    """Names of sibling bodies may be alike."""
    inner = Garden(g.draw, prefix, g)
    grow(inner, 3)
    last = inner.add(g.pick(["Identity", "Neg"]), [g.pick(inner.full)])
    output = helper.make_tensor_value_info(last, FLOAT, [None, None])
    return helper.make_graph(inner.nodes, "body", [], [output], initializer=inner.initializers)


def _loop(g: Garden) -> None:
    trips = g.draw(st.sampled_from([0, 1, 2]))
    prefix = g.prefix + "l_"
    inner = Garden(g.draw, prefix, g)
    state = f"{prefix}state"
    inner.full.append(state)
    grow(inner, 3)
    last = inner.add(g.pick(["Identity", "Sin"]), [g.pick(inner.full)])
    inner.nodes.append(helper.make_node("Identity", [f"{prefix}go"], [f"{prefix}still"]))
    body = helper.make_graph(
        inner.nodes,
        "body",
        [
            helper.make_tensor_value_info(f"{prefix}i", INT64, []),
            helper.make_tensor_value_info(f"{prefix}go", BOOL, []),
            helper.make_tensor_value_info(state, FLOAT, [None, None]),
        ],
        [
            helper.make_tensor_value_info(f"{prefix}still", BOOL, []),
            helper.make_tensor_value_info(last, FLOAT, [None, None]),
        ],
        initializer=inner.initializers,
    )
    count, on = g.constant(np.array(trips, np.int64)), g.constant(np.array(True))
    start = g.pick(g.full)
    g.full.append(g.add("Loop", [count, on, start], body=body))


def _call(g: Garden) -> None:
    function = g.pick(["scaled", "twice"])
    attributes = {"by": float(g.draw(st.integers(1, 3)))} if function == "scaled" else {}  # type: ignore[arg-type]
    source = g.pick(g.rows) if g.rows and g.draw(st.booleans()) else g.pick(g.full)
    made = g.add(function, [source], domain="local", **attributes)
    (g.rows if source in g.rows else g.full).append(made)


def _parts(g: Garden) -> None:
    """Nodes with several outputs, of which one may be read by nobody."""
    first, second = g.name(), g.name()
    g.nodes.append(helper.make_node("Split", [g.pick(g.full)], [first, second], axis=1))
    if g.draw(st.booleans()):
        second = first
    g.full.append(g.add("Concat", [first, second], axis=1))


def _repeat(g: Garden) -> None:
    """More rows, and as many as before of them: by numbers that are computed."""
    source = g.pick(g.full)
    tiled = g.add("Tile", [source, g.ints(g.draw(st.integers(1, 2)), 1)])  # type: ignore[arg-type]
    size = g.add("Gather", [g.add("Shape", [g.pick([source, *g.full])]), g.ints(0)])
    cut = g.add("Slice", [tiled, g.ints(0), size, g.ints(0)])
    back = g.add("Concat", [g.add("Gather", [g.add("Shape", [cut]), g.ints(0)]), g.ints(-1)], axis=0)
    g.full.append(g.add("Reshape", [cut, back]))


def _choose(g: Garden) -> None:
    """A choice by a comparison of sizes."""
    size = g.add("Gather", [g.add("Shape", [g.pick(g.full)]), g.ints(g.draw(st.integers(0, 1)))])  # type: ignore[arg-type]
    truth = g.add(g.pick(["Less", "Equal", "Greater"]), [size, g.ints(g.draw(st.sampled_from([0, 1, 4])))])  # type: ignore[arg-type]
    g.full.append(g.add("Where", [truth, g.pick(g.full), g.pick(g.full)]))


def _lift(g: Garden) -> None:
    """There and back through another rank."""
    made = g.add("Unsqueeze", [g.pick(g.full), g.ints(1)])
    middle = g.add(g.pick(["Neg", "Identity"]), [made])
    g.full.append(
        g.add("Squeeze", [middle, g.ints(1)]) if g.draw(st.booleans()) else g.add("Flatten", [middle], axis=1)
    )


_PLAIN = [
    _elementwise,
    _unary,
    _constant_chain,
    _reshape,
    _expand,
    _sizes,
    _idle,
    _swap,
    _call,
    _parts,
    _repeat,
    _choose,
    _lift,
]


def grow(g: Garden, most: int) -> None:
    """Add up to so many steps."""
    steps = _PLAIN + ([_branch, _loop] if g.depth < 2 else [])
    for _ in range(g.draw(st.integers(1, most))):  # type: ignore[arg-type]
        g.draw(st.sampled_from(steps))(g)  # type: ignore[operator]


def _functions() -> list[object]:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    referring = helper.make_node("Constant", [], ["k"])
    attribute = referring.attribute.add(name="value_float", type=1)
    attribute.ref_attr_name = "by"
    scaled = [
        referring,
        helper.make_node("Constant", [], ["c"], value_float=2.0),
        helper.make_node("Add", ["c", "c"], ["d"]),
        helper.make_node("Mul", ["k", "d"], ["e"]),
        helper.make_node("Identity", ["a"], ["i"]),
        helper.make_node("Mul", ["i", "e"], ["b"]),
    ]
    twice = [
        helper.make_node("Neg", ["a"], ["t"]),
        helper.make_node("Neg", ["a"], ["u"]),
        helper.make_node("Add", ["t", "u"], ["w"]),
        helper.make_node("Identity", ["w"], ["b"]),
    ]
    return [
        helper.make_function("local", "scaled", ["a"], ["b"], scaled, opsets, ["by"]),
        helper.make_function("local", "twice", ["a"], ["b"], twice, opsets),
    ]


@st.composite
def models(draw: Draw) -> ModelProto:
    """A model of x[N, 4], perhaps an overridable row, and one to three outputs."""
    g = Garden(draw)
    inputs = [helper.make_tensor_value_info("x", FLOAT, ["N", 4])]
    if draw(st.booleans()):
        inputs.append(helper.make_tensor_value_info("w", FLOAT, [4]))
        g.initializers.append(numpy_helper.from_array(np.array([1, 2, 3, 4], np.float32), "w"))
        g.rows.append("w")
    grow(g, 8)
    made = [name for name in g.full if name != "x"] or [g.add("Neg", ["x"])]
    chosen = draw(st.lists(st.sampled_from(made + g.rows), min_size=1, max_size=3, unique=True))
    own = {name for node in g.nodes for name in node.output}
    ends = [name if name in own else g.add("Identity", [name]) for name in chosen]  # type: ignore[attr-defined]
    shapes = {True: [4], False: [None, None]}
    outputs = [
        helper.make_tensor_value_info(end, FLOAT, shapes[name in g.rows])
        for end, name in zip(ends, chosen, strict=True)
    ]  # type: ignore[call-overload]
    graph = helper.make_graph(g.nodes, "grown", inputs, outputs, initializer=g.initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=_functions(), ir_version=8)
