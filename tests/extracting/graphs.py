"""Random graphs with branches, loops, functions, shared and overridable initializers and a symbolic dim."""

from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

T = ["N", 3]
UNARY, BINARY = ["Relu", "Neg", "Tanh", "Identity"], ["Add", "Mul", "Sub"]
WEIGHTS = {"w": [1, -2, 3], "v": [0.5, 0.25, -1], "o": [2, 1, -0.5]}
FEEDS = {"x": np.array([[0.5, -1, 2], [1, 0.25, -3]], np.float32), "z": np.array([[1, 2, -1]] * 2, np.float32)}


@dataclass
class Writer:
    """Nodes of one graph as they are drawn; every value has the shape [N, 3] or broadcasts to it."""

    draw: object
    values: list[str]
    prefix: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inner: list[tuple[str, str]] = field(default_factory=list)  # values of bodies, with the output of their node

    def value(self):
        return self.draw(st.sampled_from(self.values))

    def new(self):
        return f"{self.prefix}{len(self.nodes)}"

    def add(self, op, inputs, outputs, **attributes):
        self.nodes.append(
            helper.make_node(op, inputs, outputs, name=f"node_{self.prefix}{len(self.nodes)}", **attributes)
        )
        self.values += outputs

    def step(self, deep):
        kinds = ["unary", "binary", "pair", "constant", "reshape", *(["if", "loop"] if deep else [])]
        getattr(self, f"put_{self.draw(st.sampled_from(kinds))}")()

    def put_unary(self):
        self.add(self.draw(st.sampled_from(UNARY)), [self.value()], [self.new()])

    def put_binary(self):
        self.add(self.draw(st.sampled_from(BINARY)), [self.value(), self.value()], [self.new()])

    def put_pair(self):
        name = self.new()
        self.add("Pair", [self.value(), self.value()], [f"{name}_sum", f"{name}_gap"], domain="loc")

    def put_constant(self):
        tensor = numpy_helper.from_array(np.float32([1, 0, -1]))
        self.add("Constant", [], [self.new()], value=tensor)

    def put_reshape(self):
        name = self.new()
        source = self.value()
        self.nodes.append(helper.make_node("Shape", [source], [f"{name}_shape"], name=f"node_{name}_shape"))
        self.add("Reshape", [source, f"{name}_shape"], [name])

    def body(self, suffix, inputs=()):
        inside = Writer(self.draw, [*self.values, *inputs], f"{self.new()}{suffix}_")
        for _ in range(self.draw(st.integers(1, 3))):
            inside.step(deep=False)
        # all that leaves a body has one shape, whatever was broadcast
        inside.add("Add", [inside.value(), "zero"], [f"{inside.prefix}out"])
        return inside

    def put_if(self):
        name = self.new()
        then, other = self.body("t"), self.body("e")
        graphs = {
            "then_branch": helper.make_graph(then.nodes, "t", [], [typed(then.values[-1])]),
            "else_branch": helper.make_graph(other.nodes, "e", [], [typed(other.values[-1])]),
        }
        self.inner += [(node.output[0], name) for node in then.nodes if node.op_type in (*UNARY, *BINARY)]
        self.add("If", ["c"], [name], **graphs)

    def put_loop(self):
        name = self.new()
        inside = self.body("l", [f"{name}_state"])
        nodes = [helper.make_node("Identity", [f"{name}_go"], [f"{name}_on"]), *inside.nodes]
        ins = [helper.make_tensor_value_info(f"{name}_i", TensorProto.INT64, [])]
        ins += [helper.make_tensor_value_info(f"{name}_go", TensorProto.BOOL, []), typed(f"{name}_state")]
        outs = [helper.make_tensor_value_info(f"{name}_on", TensorProto.BOOL, []), typed(inside.values[-1])]
        self.inner += [(node.output[0], name) for node in inside.nodes if node.op_type in (*UNARY, *BINARY)]
        state = f"{name}_start"
        self.nodes.append(helper.make_node("Add", [self.value(), "zero"], [state], name=f"node_{state}"))
        self.add("Loop", ["n", "", state], [name], body=helper.make_graph(nodes, "b", ins, outs))


def typed(name):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, T)


@st.composite
def models(draw):
    """A model, and its inner values with the outputs of the nodes that hold them."""
    ir = draw(st.sampled_from([8, 10]))
    writer = Writer(draw, ["x", "z", *WEIGHTS], "a")
    writer.nodes.append(helper.make_node("Sub", ["x", "x"], ["zero"], name="node_zero"))
    for _ in range(draw(st.integers(2, 9))):
        writer.step(deep=True)
    writer.add("Add", [writer.values[-1], "zero"], ["y"])
    if draw(st.booleans()):
        writer.nodes.reverse()  # an unsorted file: runtimes take it, and a piece is sorted
    inputs = [typed("x"), typed("z"), helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    inputs.append(helper.make_tensor_value_info("o", TensorProto.FLOAT, [3]))  # may be overridden
    stored = [numpy_helper.from_array(np.float32(value), name) for name, value in WEIGHTS.items()]
    stored.append(numpy_helper.from_array(np.array(2, np.int64), "n"))
    graph = helper.make_graph(writer.nodes, "g", inputs, [typed("y")], stored)
    pair = helper.make_function(
        "loc",
        "Pair",
        ["p", "q"],
        ["s", "d"],
        [helper.make_node("Add", ["p", "q"], ["s"]), helper.make_node("Deep", ["p", "q"], ["d"], domain="loc")],
        [helper.make_opsetid("", 17), helper.make_opsetid("loc", 1)],
    )
    deep = helper.make_function(
        "loc", "Deep", ["p", "q"], ["d"], [helper.make_node("Sub", ["p", "q"], ["d"])], [helper.make_opsetid("", 17)]
    )
    unused = helper.make_function(
        "loc", "Unused", ["p"], ["d"], [helper.make_node("Neg", ["p"], ["d"])], [helper.make_opsetid("", 17)]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("loc", 1)]
    made = helper.make_model(graph, functions=[unused, deep, pair], opset_imports=opsets, ir_version=ir)
    return made, writer.inner


def run(model, feeds):
    """All outputs, by name."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    known = {value.name for value in (*session.get_inputs(), *session.get_overridable_initializers())}
    given = {name: value for name, value in feeds.items() if name in known}
    return dict(zip(names, session.run(names, given), strict=True))


def recorded(model, feeds):
    """Every value of the main graph."""
    exposed = onnx.ModelProto()
    exposed.CopyFrom(model)
    del exposed.graph.output[:]
    made = [name for node in model.graph.node for name in node.output]
    exposed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return {**stored, **feeds, **run(exposed, feeds)}


def instead(model, inner, output):
    """The model with another inner value handed out of the body of the node that makes an output; loops run once."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    node = next(node for node in changed.graph.node if output in node.output)
    graph = next(a.g for a in node.attribute if any(inner in inside.output for inside in a.g.node))
    graph.node.append(helper.make_node("Add", [inner, "zero"], ["handed_out"]))
    graph.output[-1].name = "handed_out"
    rounds = next(tensor for tensor in changed.graph.initializer if tensor.name == "n")
    rounds.CopyFrom(numpy_helper.from_array(np.array(1, np.int64), "n"))
    changed.graph.output[0].CopyFrom(typed(output))
    return changed
