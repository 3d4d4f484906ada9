"""Values of tensors, and models whose weights are elsewhere."""

import dataclasses
import io
import os
import time

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbench.core import formats, wire
from onnxbench.core.model import Model, load, save
from onnxbench.core.tensors import is_external, tensors
from onnxbench.core.weights import array, fatten, locate, slim, tensor_bytes
from onnxbench.errors import ModelError

TYPES = sorted(set(helper.get_all_tensor_dtypes()) - {TensorProto.STRING})
#: Heavy tensors everywhere they may be: an initializer, a Constant, one in a function, one in each branch.
NESTED = """
<ir_version: 10, opset_import: ["": 21, "loc": 1]>
g (float[N] x) => (float[N] y) <float one = {0}> {
    s = ReduceSum<keepdims = 0>(x)
    c = Greater(s, one)
    k = Constant()
    a = Add(x, k)
    b = loc.F(a)
    y = If(c) <
        then_branch = yes () => (float[N] p) { kp = Constant() p = Add(b, kp) },
        else_branch = no () => (float[N] q) { q = Add(b, kq) }
    >
}
<domain: "loc", opset_import: ["": 21]>
F (i) => (o) { kf = Constant() o = Mul(i, kf) }
"""


def nested(count=1000):
    proto = onnx.parser.parse_model(NESTED)

    def fill(node, start):
        value = numpy_helper.from_array(np.arange(start, start + count, dtype=np.float32))
        node.attribute.append(helper.make_attribute("value", value))

    branches = {a.name: a.g for a in proto.graph.node[-1].attribute}
    fill(proto.graph.node[2], 1)
    fill(proto.functions[0].node[0], 2)
    fill(branches["then_branch"].node[0], 3)
    branches["else_branch"].initializer.append(numpy_helper.from_array(np.arange(4, 4 + count, dtype=np.float32), "kq"))
    return proto


@pytest.fixture
def written(tmp_path):
    (tmp_path / "m.onnx").write_bytes(nested().SerializeToString())
    return load(tmp_path / "m.onnx")


def bytes_of(model):
    return model.proto.SerializeToString(deterministic=True)


def run(model, x):
    options = onnxruntime.SessionOptions()
    if model.folder is not None:
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", os.fspath(model.folder)
        )
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.proto.SerializeToString(), options, providers=providers)
    return session.run(None, {"x": x})[0]


# --- values


@pytest.mark.parametrize("data_type", TYPES, ids=TensorProto.DataType.Name)
def test_every_type_reads_the_same_from_bytes_lists_and_files(tmp_path, data_type):
    dtype = helper.tensor_dtype_to_np_dtype(data_type)
    values = [2, 1, 1, 2, 1] if data_type == TensorProto.FLOAT8E8M0 else [0, 1, 1, 0, 1]  # a type without a zero
    raw = numpy_helper.from_array(np.array(values).astype(dtype), "w")
    typed = helper.make_tensor("w", data_type, [5], values)
    (tmp_path / "w.data").write_bytes(b"?" * 3 + raw.raw_data)
    outside = TensorProto(name="w", data_type=data_type, dims=[5], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="w.data")
    outside.external_data.add(key="offset", value="3")
    model = Model(onnx.ModelProto(), folder=tmp_path)
    wanted = numpy_helper.to_array(raw)
    for tensor in (raw, typed, outside):
        assert array(model, tensor).dtype == wanted.dtype
        assert array(model, tensor).tobytes() == wanted.tobytes()
        assert bytes(tensor_bytes(model, tensor)) == raw.raw_data


def test_strings_have_values_but_no_bytes(written):
    tensor = numpy_helper.from_array(np.array(["a", "ß"], object), "s")
    assert array(written, tensor).tolist() == numpy_helper.to_array(tensor).tolist()
    with pytest.raises(ModelError, match="strings"):
        tensor_bytes(written, tensor)


@pytest.mark.parametrize("dims", [[], [0], [3, 0]])
def test_scalars_and_empty_tensors(written, dims):
    tensor = numpy_helper.from_array(np.zeros(dims, np.float32), "w")
    assert array(written, tensor).shape == tuple(dims)
    assert array(written, TensorProto(name="w", data_type=1, dims=[0])).size == 0


INVALID = {
    "huge dims": ({"dims": [1 << 40, 1 << 20], "data_type": 1, "raw_data": b"\0" * 8}, "needs 4611686018427387904"),
    "dims that wrap": ({"dims": [1 << 62, 4], "data_type": 1, "raw_data": b""}, "64 bits"),
    "negative dims": ({"dims": [-2], "data_type": 1, "raw_data": b"\0" * 8}, "negative"),
    "two negative dims": ({"dims": [-2, -1], "data_type": 1, "raw_data": b"\0" * 8}, "negative"),
    "no data": ({"dims": [2], "data_type": 1}, "0 entries of float_data"),
    "odd bytes": ({"dims": [2], "data_type": 1, "raw_data": b"\0" * 7}, "7 bytes of raw_data"),
    "unknown type": ({"dims": [2], "data_type": 200, "raw_data": b"\0" * 8}, "unknown data_type: 200"),
    "no type": ({"dims": [2], "raw_data": b"\0" * 8}, "unknown data_type"),
    "two payloads": ({"dims": [2], "data_type": 1, "raw_data": b"\0" * 8, "float_data": [1, 2]}, "two payloads"),
    "another list": ({"dims": [1], "data_type": 1, "int32_data": [1]}, "instead of float_data"),
    "strings in bytes": ({"dims": [1], "data_type": 8, "raw_data": b"a"}, "cannot be stored"),
    "half a complex": ({"dims": [1], "data_type": 14, "float_data": [1]}, "needs 2"),
    "segments": ({"dims": [1], "data_type": 1, "float_data": [1], "segment": TensorProto.Segment(begin=0)}, "segments"),
}


@pytest.mark.parametrize("kind", INVALID)
def test_invalid_tensors_are_refused_by_name(written, kind):
    content, words = INVALID[kind]
    for call in (array, tensor_bytes):
        with pytest.raises(ModelError, match=words) as caught:
            call(written, TensorProto(name="w", **content))
        assert caught.value.code == "OB306"
        assert "tensor 'w' of m.onnx" in caught.value.message


# --- slim and fatten


def test_slim_takes_every_weight_out_and_points_into_the_file_itself(written):
    lean = slim(written)
    heavy = [t for t in tensors(lean.proto) if is_external(t)]
    assert len(heavy) == 4
    assert {locate(lean, t).file for t in heavy} == {written.path.resolve()}
    assert len(lean.proto.SerializeToString()) < 3000
    assert not any(is_external(t) for t in tensors(written.proto))


def test_fatten_is_the_inverse(written):
    assert bytes_of(fatten(slim(written))) == bytes_of(written)


def test_small_tensors_stay(written):
    assert bytes_of(slim(written, threshold=10_000)) == bytes_of(written)


@pytest.mark.parametrize("x", [1.0, -1.0])
def test_a_slim_model_gives_the_same_numbers(written, x):
    feed = np.full(1000, x, np.float32)
    assert run(slim(written), feed).tolist() == run(written, feed).tolist()


def test_a_model_from_a_stream_is_slimmed_through_a_temporary_file():
    model = load("-", stdin=io.BytesIO(nested().SerializeToString()))
    lean = slim(model)
    feed = np.ones(1000, np.float32)
    assert bytes_of(fatten(lean)) == bytes_of(model)
    assert run(lean, feed).tolist() == run(model, feed).tolist()


@pytest.mark.parametrize("change", ["overwritten", "truncated", "gone", "another model"])
def test_a_file_that_changed_before_is_not_trusted(written, change):
    data = written.path.read_bytes()
    contents = {"overwritten": b"\x08" * len(data), "truncated": data[:5000], "another model": nested(900)}
    if change == "gone":
        written.path.unlink()
    else:
        content = contents[change]
        written.path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    assert bytes_of(fatten(slim(written))) == bytes_of(written)


def test_a_file_that_changes_afterwards_is_noticed(written):
    lean = slim(written)
    data = written.path.read_bytes()
    time.sleep(0.02)
    written.path.write_bytes(data[::-1])
    with pytest.raises(ModelError, match="has changed since") as caught:
        fatten(lean)
    assert caught.value.code == "OB304"


def test_weights_changed_in_hand_are_not_taken_from_the_file(written):
    proto = onnx.ModelProto()
    proto.CopyFrom(written.proto)
    value = proto.graph.node[2].attribute[0].t
    value.raw_data = np.arange(1000, dtype=np.float32)[::-1].tobytes()
    changed = dataclasses.replace(written, proto=proto)
    assert bytes_of(fatten(slim(changed))) == bytes_of(changed)


def test_explicit_defaults_and_metadata_return(written):
    tensor = written.proto.functions[0].node[0].attribute[0].t
    tensor.data_location = TensorProto.DEFAULT
    tensor.metadata_props.add(key="a", value="b")
    assert bytes_of(fatten(slim(written))) == bytes_of(written)


def test_tensors_that_were_external_stay_so(tmp_path, adding, external, floats):
    (tmp_path / "w.data").write_bytes(floats(4).tobytes())
    proto = adding(external("w", "w.data", 8, 8), numpy_helper.from_array(floats(1000), "v"))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    model = load(tmp_path / "m.onnx")
    fat = fatten(slim(model))
    assert [is_external(t) for t in fat.proto.graph.initializer] == [True, False]
    assert array(fat, fat.proto.graph.initializer[0]).tolist() == [2, 3]


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_files_in_several_folders_share_their_parent_and_run(tmp_path, adding, external, floats):
    snapshot, blobs = tmp_path / "snapshots" / "abc", tmp_path / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "b2").write_bytes(floats(1000).tobytes())
    proto = adding(external("w", "m.data", 0, 4000, dims=[1000]), numpy_helper.from_array(floats(1000, 5), "v"))
    (blobs / "b1").write_bytes(proto.SerializeToString())
    (snapshot / "m.onnx").symlink_to("../../blobs/b1")
    (snapshot / "m.data").symlink_to("../../blobs/b2")
    model = load(snapshot / "m.onnx")
    proto.graph.initializer[1].raw_data = floats(1000, 9).tobytes()  # no longer in the file: goes to a temporary one
    lean = slim(dataclasses.replace(model, proto=proto))
    locations = [e.value for t in lean.proto.graph.initializer for e in t.external_data if e.key == "location"]
    assert lean.folder == lean.folder.resolve()
    assert not any(".." in place or place.startswith("/") for place in locations)
    assert run(lean, np.zeros(1000, np.float32)).tolist() == (floats(1000) + floats(1000, 9)).tolist()


def test_a_parent_as_high_as_the_root_runs(written):
    lean = slim(written)
    root = type(lean.folder)(lean.folder.anchor)
    for tensor in tensors(lean.proto):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = (lean.folder / entry.value).relative_to(root).as_posix()
    feed = np.ones(1000, np.float32)
    assert run(dataclasses.replace(lean, folder=root), feed).tolist() == run(written, feed).tolist()


# --- slim models on disk


def test_a_saved_slim_model_holds_its_weights_again(written, tmp_path):
    save(slim(written), tmp_path / "out.onnx")
    assert bytes_of(load(tmp_path / "out.onnx")) == bytes_of(written)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "out.onnx"]


def test_a_slim_model_may_replace_the_file_it_came_from(written):
    save(slim(written), written.path, force=True)
    assert bytes_of(load(written.path)) == bytes_of(written)


def test_a_slim_model_too_large_to_embed_moves_out(written, tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "LIMIT", 12_000)
    save(slim(written), tmp_path / "out.onnx")
    model = load(tmp_path / "out.onnx")
    assert sum(is_external(t) for t in tensors(model.proto)) == 4
    feed = np.ones(1000, np.float32)
    assert run(model, feed).tolist() == run(written, feed).tolist()
    assert not any(t.metadata_props for t in tensors(model.proto))


def test_text_of_a_slim_model_holds_its_weights(written, tmp_path):
    save(slim(written), tmp_path / "out.textproto")
    assert bytes_of(load(tmp_path / "out.textproto")) == bytes_of(written)


# --- the wire


def test_payloads_are_found_where_they_lie():
    data = nested().SerializeToString()
    found = [data[offset : offset + length] for offset, length in wire.payloads(data, 1024)]
    heavy = [t.raw_data for t in tensors(onnx.ModelProto.FromString(data)) if len(t.raw_data) > 1024]
    assert sorted(found) == sorted(heavy)


def test_no_bytes_make_the_walk_leave_the_buffer():
    data = nested(300).SerializeToString()
    generator = np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(data)
        broken[generator.integers(len(data))] = generator.integers(256)
        try:
            for offset, length in wire.payloads(bytes(broken), 16):
                assert 0 <= offset <= offset + length <= len(data)
        except wire.Malformed:
            pass
