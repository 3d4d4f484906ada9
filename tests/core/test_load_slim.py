"""A slim copy that is made while a file is read is the one that is made of the whole model."""

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbench.core import formats, slimming, wire
from onnxbench.core.model import load
from onnxbench.core.slimming import fatten, load_slim, slim
from onnxbench.errors import ModelError


def same(left, right):
    return left.proto.SerializeToString(deterministic=True) == right.proto.SerializeToString(deterministic=True) and (
        (left.folder, left.path, left.label) == (right.folder, right.path, right.label)
    )


def heavy(name, count=1000, start=0):
    return numpy_helper.from_array(np.arange(start, start + count, dtype=np.float32), name)


def odd_model():
    """Heavy tensors where runtimes take them as external, where operators read them themselves, and where no one looks."""
    proto = onnx.parser.parse_model("""
    <ir_version: 10, opset_import: ["": 21, "loc": 1]>
    g (float[N] x) => (float[N] y) {
        k = Constant()
        t = loc.Own(x)
        a = Add(k, t)
        y = Identity(a)
    }
    <domain: "loc", opset_import: ["": 21]>
    Own (i) => (o) { kf = Constant() o = Add(i, kf) }
    """)
    proto.graph.initializer.extend([heavy("w"), heavy("small", 4), heavy("w2", start=7)])
    proto.graph.node[0].attribute.append(helper.make_attribute("value", heavy("k", start=1)))
    proto.graph.node[1].attribute.append(helper.make_attribute("table", heavy("t", start=2)))
    proto.functions[0].node[0].attribute.append(helper.make_attribute("value", heavy("kf", start=3)))
    mistyped = helper.make_attribute("strange", 1)
    mistyped.t.CopyFrom(heavy("u", start=4))
    proto.graph.node[3].attribute.append(mistyped)
    sparse = proto.graph.sparse_initializer.add(dims=[4000])
    sparse.values.CopyFrom(heavy("s", start=5))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.arange(1000), "si"))
    both = heavy("both", start=6)
    both.external_data.add(key="location", value="elsewhere")
    proto.graph.initializer.append(both)
    return proto


@pytest.mark.parametrize("threshold", [0, 16, 1024, 10**9])
def test_it_is_what_slimming_the_whole_model_gives(tmp_path, threshold):
    path = tmp_path / "m.onnx"
    path.write_bytes(odd_model().SerializeToString())
    assert same(load_slim(path, threshold=threshold), slim(load(path), threshold))
    assert fatten(load_slim(path)).proto == load(path).proto


def test_only_what_is_light_is_read(tmp_path, monkeypatch):
    path = tmp_path / "m.onnx"
    proto = odd_model()
    del proto.graph.node[3].attribute[:]
    path.write_bytes(proto.SerializeToString())
    read = []
    parse = formats.parse
    monkeypatch.setattr(formats, "parse", lambda data, *rest: read.append(len(data)) or parse(data, *rest))
    assert same(load_slim(path), slim(load(path)))
    assert read[0] < path.stat().st_size / 2


def test_what_is_external_stays_so_and_its_folder_counts(tmp_path):
    (tmp_path / "data").mkdir()
    proto = odd_model()
    big = np.arange(3000, dtype=np.float32)
    (tmp_path / "data" / "w.bin").write_bytes(big.tobytes())
    outside = TensorProto(name="outside", data_type=TensorProto.FLOAT, dims=[3000], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="data/w.bin")
    proto.graph.initializer.append(outside)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    assert same(load_slim(tmp_path / "m.onnx"), slim(load(tmp_path / "m.onnx")))


def test_a_link_leads_to_the_file(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "blob").write_bytes(odd_model().SerializeToString())
    (tmp_path / "m.onnx").symlink_to(tmp_path / "store" / "blob")
    assert same(load_slim(tmp_path / "m.onnx"), slim(load(tmp_path / "m.onnx")))


def test_a_model_in_pieces_is_one_model(tmp_path):
    first, second = odd_model(), onnx.ModelProto()
    second.graph.initializer.append(heavy("later", start=9))
    path = tmp_path / "m.onnx"
    path.write_bytes(first.SerializeToString() + second.SerializeToString())
    assert same(load_slim(path), slim(load(path)))


@pytest.mark.parametrize(
    "data",
    [b"", b"no model", b"\x80", odd_model().SerializeToString()[:-100], odd_model().SerializeToString() + b"\x0b\xff"],
)
def test_what_is_wrong_with_a_file_is_said_as_ever(tmp_path, data):
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelError) as usual:
        load(path)
    with pytest.raises(ModelError) as told:
        load_slim(path)
    assert str(told.value) == str(usual.value)


def test_other_formats_and_streams_are_read_as_ever(tmp_path):
    text = tmp_path / "m.onnxtxt"
    text.write_text('<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] y) { y = Relu(x) }')
    assert same(load_slim(text), slim(load(text)))
    (tmp_path / "m.onnx").write_bytes(odd_model().SerializeToString())
    with (tmp_path / "m.onnx").open("rb") as one, (tmp_path / "m.onnx").open("rb") as two:
        made, usual = load_slim("-", stdin=one), slim(load("-", stdin=two))
    assert fatten(made).proto == fatten(usual).proto


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    path = tmp_path / "m.onnx"
    path.write_bytes(odd_model().SerializeToString())
    changed = odd_model()
    changed.producer_name = "another"
    cut = wire.without_payloads

    def meanwhile(*args):
        found = cut(*args)
        path.write_bytes(changed.SerializeToString())
        os.utime(path, ns=(1, 1))
        return found

    monkeypatch.setattr(slimming.wire, "without_payloads", meanwhile)
    assert load_slim(path).proto.producer_name == "another"


@pytest.mark.parametrize("read", [load_slim, lambda path: slim(load(path))])
def test_a_file_that_changes_as_soon_as_it_is_read_is_not_taken_for_the_one_that_was_read(tmp_path, monkeypatch, read):
    path = tmp_path / "m.onnx"
    path.write_bytes(odd_model().SerializeToString())
    refer = slimming._referring

    def meanwhile(*args):
        path.write_bytes(b"x" * path.stat().st_size)
        os.utime(path, ns=(1, 1))
        return refer(*args)

    monkeypatch.setattr(slimming, "_referring", meanwhile)
    made = read(path)
    with pytest.raises(ModelError, match="has changed since"):
        fatten(made)


@pytest.mark.parametrize("step", ["_referring", "locate", "_mapped"])
@pytest.mark.parametrize("read", [load_slim, lambda path: slim(load(path))])
def test_a_file_that_goes_while_it_is_read_is_an_error_of_the_model(tmp_path, monkeypatch, step, read):
    path = tmp_path / "m.onnx"
    proto = odd_model()
    outside = TensorProto(name="outside", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="w.bin")
    proto.graph.initializer.append(outside)
    path.write_bytes(proto.SerializeToString())
    (tmp_path / "w.bin").write_bytes(bytes(12))
    usual = getattr(slimming, step)

    def meanwhile(*args):
        path.unlink(missing_ok=True)
        (tmp_path / "w.bin").unlink(missing_ok=True)
        return usual(*args)

    monkeypatch.setattr(slimming, step, meanwhile)
    with pytest.raises(ModelError):
        fatten(read(path))


def field(number, payload):
    return wire._to_varint(number << 3 | 2) + wire._to_varint(len(payload)) + payload


@pytest.mark.parametrize("depth", [20, 40, 3000])
def test_deep_bodies_are_read_or_refused_as_ever(tmp_path, depth):
    graph = field(5, heavy("w").SerializeToString())
    for _ in range(depth):
        attribute = field(1, b"then_branch") + field(6, graph) + b"\xa0\x01\x05"
        graph = field(1, field(4, b"If") + field(5, attribute)) + field(2, b"g")
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x08\x08" + field(7, graph))
    if depth < 33:
        assert same(load_slim(path), slim(load(path)))
        return
    with pytest.raises(ModelError, match="nests its graphs") as usual:
        load(path)
    with pytest.raises(ModelError) as told:
        load_slim(path)
    assert str(told.value) == str(usual.value)
