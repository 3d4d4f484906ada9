"""OpenVINO, of this environment: another vendor's runtime beside ONNX Runtime."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from onnxbench import isolate
from onnxbench.errors import MachineError, UsageError, quote
from onnxbench.runtimes import packing
from onnxbench.runtimes.base import Runtime, Spec, as_unsupported, parse_pairs
from onnxbench.runtimes.job import Job
from onnxbench.runtimes.outcome import Outcome

if TYPE_CHECKING:
    from onnx import ModelProto

PRECISIONS = ("f32", "f16", "bf16", "undefined")
#: OpenVINO's names of the element types that numpy lacks, by ONNX's numbers.
NARROW = {16: "bf16", 17: "f8e4m3", 19: "f8e5m2", 21: "u4", 22: "i4", 23: "f4e2m1", 24: "f8e8m0"}
#: Its import starts threads, so it is not imported in the process that workers are forked from. A process of its own, not
#: ONNX Runtime's: what one of them does to the heap or to its threads must not be laid at the other's door.
_OWN = isolate.Interpreter(warm=("numpy", "onnx", "onnxbench.runtimes.openvino"))
_NODE = re.compile(r"ONNX node '<Node\([^)]*\): ([^>]+)>'|node with name '([^']+)'|[Uu]nsupported .* name: (\S+)")
_UNSUPPORTED = re.compile(r"No conversion rule found|does not support the following|Unsupported operation of type")


class OpenVino(Runtime):
    """Options, separated by commas.

    `device=CPU` · `precision=f32|f16|bf16|undefined` (the last: the device's choice) · `threads=N` ·
    `property.KEY=VALUE`. It has no mode without optimizations: transformations of the graph are part of its compiling.
    """

    name = "openvino"
    package = "openvino"
    sentence = "OpenVINO, in f32 unless told otherwise; options device, precision, threads, property.KEY"
    function = "onnxbench.runtimes.openvino:run_job"

    def parse(self, spec: Spec) -> dict[str, Any]:
        options: dict[str, Any] = {"device": "CPU", "precision": "f32"}
        for key, value in parse_pairs(spec).items():
            if key.startswith("property.") and key != "property.INFERENCE_PRECISION_HINT":
                options.setdefault("property", {})[key.removeprefix("property.")] = value
            elif key == "device" and value:
                options[key] = value.replace("+", ",")  # AUTO:GPU+CPU
            elif key == "precision" and value in PRECISIONS:
                options[key] = value
            elif key == "threads" and value.isdecimal():
                options[key] = int(value)
            elif key in _EXPECTED:
                raise UsageError("OB205", f"{key}={value} in {quote(str(spec))}: expected {_EXPECTED[key]}")
            else:
                known = ", ".join([*_EXPECTED, "property.KEY"])
                raise UsageError("OB205", f"openvino has no option {quote(key)}", hint=f"options: {known}")
        return options

    def choose_interpreter(self, spec: Spec) -> isolate.Interpreter:
        super().choose_interpreter(spec)
        return _OWN

    def version(self) -> str:
        result = isolate.call(probe, (self.options,), interpreter=self.interpreter)
        if isinstance(result, isolate.Ok):
            return f"{result.value} ({self.options['precision']})"
        if isinstance(result, isolate.Error) and result.kind in ("RuntimeError", "LookupError"):
            reason = " ".join(result.message.split())
            raise MachineError("OB401", f"{quote(str(self))} cannot run here: {reason}", hint="onnxbench runtimes")
        reason = result.message if isinstance(result, isolate.Error) else "the import dies"
        raise MachineError("OB401", f"openvino cannot be imported: {reason}", hint="pip install 'onnxbench[openvino]'")

    @classmethod
    def installed_version(cls) -> str:
        return cls(Spec(cls.name)).version().partition(" ")[0]

    def explain(self, outcome: Outcome) -> Outcome:
        if outcome.kind != "error":
            return outcome
        found = _NODE.search(outcome.message)
        named = dataclasses.replace(outcome, node=next(filter(None, found.groups()), "")) if found else outcome
        return as_unsupported(named) if _UNSUPPORTED.search(outcome.message) else named

    def script(self) -> str:
        names = {packing.DTYPE_NAMES[element]: name for element, name in NARROW.items()}
        numbers = {name: element for element, name in NARROW.items()}
        return _SCRIPT.format(options=self.options, narrow=names, numbers=numbers)


def probe(options: Mapping[str, Any]) -> str:
    """The release installed here, once the device with these options has compiled something.

    Raises:
        ImportError: there is none. RuntimeError, LookupError: the device or a property is not to be had.
    """
    openvino = load()
    parameter = openvino.op.Parameter(openvino.Type.f32, openvino.PartialShape([1]))
    model = openvino.Model([openvino.opset8.relu(parameter)], [parameter], "probe")
    compile_model(openvino.Core(), model, options)
    return str(openvino.get_version()).partition("-")[0]


def run_job(job: Job) -> dict[str, Any]:
    """Outputs by name, or whatever OpenVINO raises."""
    from onnx import ModelProto

    openvino = load()
    proto = ModelProto.FromString(job.model)
    freed = free(proto, job.feeds)
    core = openvino.Core()
    # A model that comes as bytes has its external data where the process stands; so it is mapped, and not copied.
    with contextlib.chdir(job.folder or "."):
        compiled = compile_model(core, core.read_model(proto.SerializeToString() if freed else job.model), job.options)
    job.phase = "run"
    request = compiled.create_infer_request()
    inputs = {value.name for value in proto.graph.input}
    for port in compiled.inputs:  # those that nothing reads are no longer among them
        (name,) = port.names & inputs  # and the others go by the names of values equal to them too
        if name not in job.feeds:  # it would read whatever lies there
            raise ValueError(f"no value for the input {name}")
        request.set_tensor(port, to_openvino(name, job.feeds[name]))
    request.infer()
    names = [value.name for value in proto.graph.output]
    if len(names) != len(compiled.outputs):
        raise RuntimeError(f"OpenVINO made {len(compiled.outputs)} outputs of {len(names)}")
    found = {name: from_openvino(request.get_output_tensor(i)) for i, name in enumerate(names)}
    return {name: found[name] for name in job.fetch or found}


def load() -> Any:
    """The package, which would else tell its makers of each import and leave files in the home folder."""
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment] # OpenVINO has a stub for when it is absent
    import openvino

    return openvino


def compile_model(core: Any, model: Any, options: Mapping[str, Any]) -> Any:
    """The model for a device, in the precision asked for.

    Raises:
        LookupError: the device computes in another one: it takes the wish for a hint.
    """
    wanted = options["precision"]
    settings: dict[str, Any] = {"INFERENCE_PRECISION_HINT": wanted, **options.get("property", {})}
    if "threads" in options:
        settings["INFERENCE_NUM_THREADS"] = options["threads"]
    compiled = core.compile_model(model, options["device"], settings)
    used = _precision(compiled)
    if used and wanted not in (used, "undefined"):
        device = options["device"]
        raise LookupError(f"precision {wanted} cannot be used on this machine, where {device} computes in {used}")
    return compiled


def _precision(compiled: Any) -> str:
    """What a compiled model computes in; "" if the device does not say."""
    try:
        return str(compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name())
    except (RuntimeError, AttributeError):
        return ""


def free(proto: ModelProto, feeds: Mapping[str, Any]) -> bool:
    """Take away initializers that are inputs and fed too: OpenVINO makes constants of them. Whether there were any."""
    inputs = {value.name for value in proto.graph.input}
    fed = [tensor for tensor in proto.graph.initializer if tensor.name in inputs and tensor.name in feeds]
    for tensor in fed:
        proto.graph.initializer.remove(tensor)
    return bool(fed)


def to_openvino(name: str, packed: Any) -> Any:
    """A tensor of OpenVINO's from a packed value.

    Raises:
        TypeError: it has no such type.
    """
    import openvino

    if packed is None or packed[0] == "list":
        kind = "empty optionals" if packed is None else "sequences"
        raise TypeError(f"{name}: OpenVINO takes no {kind}")
    if packed[0] == "strings":
        return openvino.Tensor(np.array(packed[2], str).reshape(packed[1]))
    element, value = packed[1], packing.unpack(packed)
    if element in NARROW:
        tensor = openvino.Tensor(getattr(openvino.Type, NARROW[element]), openvino.Shape(list(value.shape)))
        if value.size:
            tensor.data.reshape(-1).view(np.uint8)[:] = np.frombuffer(packing.to_bytes(value), np.uint8)
        return tensor
    if value.dtype.type.__module__ != "numpy" or value.dtype.kind == "c":
        raise TypeError(f"{name}: OpenVINO has no type for {packing.DTYPE_NAMES[element]}")
    return openvino.Tensor(np.array(value, order="C"))


def from_openvino(tensor: Any) -> Any:
    """The value of an output, in memory of its own."""
    kind = tensor.element_type.get_type_name()
    if kind == "string":
        return np.array(tensor.str_data, object)
    element = next((number for number, name in NARROW.items() if name == kind), None)
    if element is not None:
        return packing.Raw(element, tuple(tensor.shape), np.array(tensor.data).tobytes())
    return np.array(tensor.data)


_EXPECTED = {
    "device": "a device, such as CPU",
    "precision": f"one of {', '.join(PRECISIONS)}",
    "threads": "a whole number",
}

_SCRIPT = """\
import os
import sys

sys.modules["openvino_telemetry"] = None  # or the import of openvino is told to its makers
import numpy
import openvino

OPTIONS = {options!r}
NARROW = {narrow!r}  # NumPy has no such types; they travel as bytes
NUMBERS = {numbers!r}  # of ONNX's element types


def run(model_path, feeds):
    with open(model_path, "rb") as file:
        model = file.read()
    os.chdir(os.path.dirname(os.path.abspath(model_path)))  # where external data lies
    core = openvino.Core()
    loaded = core.read_model(model)
    names = [port.any_name for port in loaded.outputs]  # compiling adds those of equal values; old releases, reading too
    if set(feeds) - {{port.any_name for port in loaded.inputs}} or any(len(port.names) > 1 for port in loaded.outputs):
        names, model = looked_up(model, feeds)
        loaded = core.read_model(model)
    settings = dict({{"INFERENCE_PRECISION_HINT": OPTIONS["precision"]}}, **OPTIONS.get("property", {{}}))
    if "threads" in OPTIONS:
        settings["INFERENCE_NUM_THREADS"] = OPTIONS["threads"]
    compiled = core.compile_model(loaded, OPTIONS["device"], settings)
    phase("run")
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        for name in port.names & set(feeds):
            request.set_tensor(port, to_openvino(feeds[name]))
    request.infer()
    return {{name: from_openvino(request.get_output_tensor(i)) for i, name in enumerate(names)}}


def looked_up(model, feeds):
    import onnx

    # OpenVINO makes constants of initializers that are inputs and fed too.
    proto = onnx.ModelProto.FromString(model)
    inputs = {{value.name for value in proto.graph.input}} & set(feeds)
    for tensor in [tensor for tensor in proto.graph.initializer if tensor.name in inputs]:
        proto.graph.initializer.remove(tensor)
    return [value.name for value in proto.graph.output], proto.SerializeToString()


def to_openvino(value):
    value = numpy.array(value, order="C")
    if value.dtype.kind in "OUS":
        return openvino.Tensor(value.astype(str))
    if value.dtype.name not in NARROW:
        return openvino.Tensor(value)
    from onnx import numpy_helper

    kind = getattr(openvino.Type, NARROW[value.dtype.name])
    tensor = openvino.Tensor(kind, openvino.Shape(list(value.shape)))
    if value.size:
        data = numpy_helper.from_array(value).raw_data
        tensor.data.reshape(-1).view("u1")[:] = numpy.frombuffer(data, "u1")
    return tensor


def from_openvino(tensor):
    kind = tensor.element_type.get_type_name()
    if kind == "string":
        return numpy.array(tensor.str_data, object)
    data = numpy.array(tensor.data)
    if kind not in NUMBERS:
        return data
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(TensorProto(data_type=NUMBERS[kind], dims=tensor.shape, raw_data=data.tobytes()))


def version():
    return "openvino " + openvino.get_version() + " (" + OPTIONS["device"] + ", " + OPTIONS["precision"] + ")"
"""
