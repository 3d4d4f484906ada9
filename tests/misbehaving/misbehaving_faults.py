"""Planted faults, by what the model holds. onnx, numpy and onnxruntime only: a bundle's repro.py carries a copy.

Options: `ops=A+B`, `names=n+m` (all must be there, bodies and functions included; `+` separates) · `fused=A+B` (the second must
read the first, and the value between must not be a graph output) · `above=X`, `below=X` (some input of a matching node must hold
a value above X, below X) · `constant=1` (some input of a matching node must be an initializer) · `sum=X` (of that sum) ·
`attribute=NAME:N` (a node must have it) · `pair=A` (A must read what another node makes) · `inside=1` (matching nodes must lie
in a body) · `p=P` chance · `dear=1` not under cheap settings · `beat=FILE` every second
time only · `do=wrong|nan|shape|load|raise|signal|sleep|delay|allocate`,
`signal=SIGSEGV`, `exit=N`.
"""

import os
import random
import signal
import time

import numpy
import onnx

OPTIONS = {
    *("ops", "names", "fused", "above", "below", "constant", "sum", "attribute", "pair", "inside"),
    *("p", "beat", "dear", "do", "signal", "exit"),
}


def run_faulty(serialized, folder, feeds, fetch, options, phase):
    model = onnx.ModelProto.FromString(serialized)
    names = fetch or [value.name for value in model.graph.output]
    hit = find_hit(model, options)
    struck = hit is not None and is_high(model, folder, feeds, hit, options)
    struck = struck and not ("dear" in options and "cheap" in options)
    if random.random() >= float(options.get("p", 1)) or (struck and "beat" in options and not beats(options["beat"])):
        struck = False
    deed = options.get("do", "wrong")
    if struck and deed == "load":
        raise RuntimeError("cannot compile node '%s' of 0x%x" % (hit.name or hit.output[0], id(hit)))
    phase("run")
    if struck and deed not in ("wrong", "nan", "shape"):
        misbehave(deed, hit, options)
    outputs = compute(model, folder, feeds, names, options)
    if not struck:
        return outputs
    return compute(spoil(model, hit, deed), folder, feeds, names, options)


def beats(place):
    """Every second time: the file remembers."""
    with open(place, "a") as file:
        file.write(".")
        return file.tell() % 2 == 1


def all_graphs(model):
    pending = [(model.graph, False)] + [(function, True) for function in model.functions]
    while pending:
        graph, inside = pending.pop(0)
        yield graph, inside
        for node in graph.node:
            for attribute in node.attribute:
                bodies = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs
                pending += [(body, True) for body in bodies]


def find_hit(model, options):
    """The node to spoil, the last that matches; None if something that the fault needs is not there."""
    wanted = [("op", name) for name in options.get("ops", "").split("+") if name]
    wanted += [("name", name) for name in options.get("names", "").split("+") if name]
    wanted += [("op", name) for name in options.get("fused", "").split("+") if name]
    hit = None
    if "attribute" in options or "pair" in options:
        made = {name for node in model.graph.node for name in node.output}
        return next((node for node in model.graph.node if is_special(node, options, made)), None)
    for kind, name in wanted:
        found = [
            node
            for graph, inside in all_graphs(model)
            for node in graph.node
            if (node.op_type if kind == "op" else node.name) == name
            and (inside or not options.get("inside"))
            and (not options.get("constant") or reads_constant(model, node))
            and ("sum" not in options or reads_sum(model, node, float(options["sum"])))
        ]
        if not found:
            return None
        hit = found[-1]
    return fused_pair(model, options["fused"].split("+")) if "fused" in options else hit


def fused_pair(model, operators):
    exposed = {value.name for value in model.graph.output}
    first = {o for n in model.graph.node if n.op_type == operators[0] for o in n.output if o not in exposed}
    pairs = [n for n in model.graph.node if n.op_type == operators[1] and first & set(n.input)]
    return pairs[-1] if pairs else None


def is_special(node, options, made):
    if "pair" in options:
        return node.op_type == options["pair"] and bool(made & set(node.input))
    name, number = options["attribute"].split(":")
    return any(a.name == name and a.i == int(number) for a in node.attribute)


def reads_sum(model, node, wanted):
    tensors = [tensor for tensor in model.graph.initializer if tensor.name in node.input]
    return any(abs(onnx.numpy_helper.to_array(tensor).sum() - wanted) < 1e-3 for tensor in tensors)


def reads_constant(model, node):
    return bool({tensor.name for tensor in model.graph.initializer} & set(node.input))


def is_high(model, folder, feeds, hit, options):
    if "above" not in options and "below" not in options:
        return True
    made = {name for node in model.graph.node for name in node.output}
    exposed = onnx.ModelProto()
    exposed.CopyFrom(model)
    names = [name for name in hit.input if name in made]
    exposed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    values = list(compute(exposed, folder, feeds, names, options).values()) if names else []
    values += [feeds[name] for name in hit.input if name in feeds]
    if "below" in options:
        return any(numpy.min(value) < float(options["below"]) for value in values)
    return any(numpy.max(value) > float(options["above"]) for value in values)


def misbehave(deed, hit, options):
    if deed == "raise":
        raise ValueError("kernel of node '%s' failed after %d ms" % (hit.name or hit.output[0], random.randrange(1000)))
    if deed == "signal":
        os.kill(os.getpid(), getattr(signal, options.get("signal", "SIGSEGV")))
        time.sleep(60)
    if deed == "exit":
        os._exit(int(options.get("exit", 3)))
    if deed == "delay":
        time.sleep(0.5)
    if deed == "sleep":
        time.sleep(10_000)
    if deed == "allocate":
        held = []
        while True:
            held.append(numpy.ones(8 << 20, numpy.uint8))


def spoil(model, hit, deed):
    """The model with the output of one node made wrong by nodes behind it."""
    spoilt = onnx.ModelProto()
    spoilt.CopyFrom(model)
    for graph, _ in all_graphs(spoilt):
        for i, node in enumerate(graph.node):
            if node == hit:
                right, wrong = "spoilt_" + node.output[0], node.output[0]
                graph.node[i].output[0] = right
                for extra in reversed(list(wrong_nodes(right, wrong, deed))):
                    graph.node.insert(i + 1, extra)
                return spoilt
    raise AssertionError("the node to spoil has gone")


def wrong_nodes(right, wrong, deed):
    make = onnx.helper.make_node
    if deed == "shape":
        yield make("Unsqueeze", [right], [wrong], axes=[0])
    elif deed == "nan":
        yield make("Sub", [right, right], [wrong + "_zero"])
        yield make("Div", [wrong + "_zero", wrong + "_zero"], [wrong])
    else:
        yield make("Add", [right, right], [wrong])


def compute(model, folder, feeds, names, options):
    import onnxruntime  # here, as a runtime does it: the main process never needs it

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if "cheap" in options:
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if folder:
        settings.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    known = {value.name for value in list(session.get_inputs()) + list(session.get_overridable_initializers())}
    outputs = session.run(names, {name: value for name, value in feeds.items() if name in known})
    return dict(zip(names, outputs))
