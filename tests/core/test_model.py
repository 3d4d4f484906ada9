"""Loading and saving: what goes in comes out, what is no model says so, and no save leaves half a file."""

import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbench.core import formats, saving
from onnxbench.core.model import Model, load, save
from onnxbench.errors import MachineError, ModelError, UsageError

MODEL = """
<ir_version: 10, opset_import: ["": 21, "loc": 1], domain: "d", model_version: 3, doc_string: "doc",
 metadata_props: ["k": "v"]>
agraph (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> { t = loc.Twice(x)  y = Add(t, w) }
<domain: "loc", opset_import: ["": 21]>
Twice (a) => (b) { b = Add(a, a) }
"""


@pytest.fixture
def proto():
    return onnx.parser.parse_model(MODEL)


@pytest.fixture
def written(tmp_path, proto):
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def rich(proto):
    """What ONNX text forgets, all in one model."""
    proto.graph.node[0].doc_string = "why"
    proto.graph.node[0].metadata_props.add(key="stack", value="my_model.py:123")
    proto.graph.doc_string = "the graph"
    proto.graph.metadata_props.add(key="g", value="1")
    proto.graph.input[0].type.denotation = "TENSOR"
    proto.graph.input[0].type.tensor_type.shape.dim[0].denotation = "BATCH"
    proto.graph.quantization_annotation.add(tensor_name="x")
    sparse = proto.graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([3], np.float32), "s"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([1], np.int64), "si"))
    return proto


def files(folder):
    return sorted(p.name for p in folder.iterdir())


# --- round trips


@pytest.mark.parametrize("suffix", [".onnx", ".pb", ".bin", ".json", ".textproto"])
def test_nothing_is_lost_on_the_way_through_a_file(tmp_path, proto, suffix):
    wanted = rich(proto).SerializeToString(deterministic=True)
    save(Model(proto), tmp_path / f"m{suffix}")
    assert load(tmp_path / f"m{suffix}").proto.SerializeToString(deterministic=True) == wanted


def test_protobuf_to_protobuf_is_identical_in_bytes(tmp_path, written):
    save(load(written), tmp_path / "copy.onnx")
    assert (tmp_path / "copy.onnx").read_bytes() == written.read_bytes()


def test_a_field_of_a_later_onnx_is_kept(tmp_path, written):
    later = b"\xc2\x02\x03new"  # field 40, three bytes
    written.write_bytes(written.read_bytes() + later)
    save(load(written), tmp_path / "copy.onnx")
    assert (tmp_path / "copy.onnx").read_bytes().endswith(later)


def test_text_round_trip(tmp_path, proto):
    save(Model(proto), tmp_path / "m.onnxtxt")
    assert load(tmp_path / "m.onnxtxt").proto.functions[0].name == "Twice"


def test_the_model_knows_where_it_came_from(written):
    model = load(str(written))
    assert (model.path, model.folder, model.label) == (written, written.parent, "m.onnx")


def test_a_relative_path_survives_a_change_of_folder(written, monkeypatch):
    monkeypatch.chdir(written.parent)
    assert load("m.onnx").path == written


def test_control_characters_do_not_reach_the_label(tmp_path, proto):
    path = tmp_path / "a\x1b[31m.onnx"
    path.write_bytes(proto.SerializeToString())
    assert load(path).label == r"a\x1b[31m.onnx"


def test_streams(proto):
    out = io.BytesIO()
    save(Model(proto), "-", stdout=out)
    model = load("-", stdin=io.BytesIO(out.getvalue()))
    assert model.proto == proto
    assert model.folder is model.path is None


# --- what cannot be read


def zipped(data):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model.onnx", data)
    return buffer.getvalue()


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123456\n"

MALFORMED = {
    "empty": (lambda ok: b"", "is empty"),
    "text": (lambda ok: b"This is not a model, it is a readme.\n" * 20, "is text"),
    "short text": (lambda ok: b"hi", "is text"),
    "zip": (zipped, "zip archive"),
    "pointer": (lambda ok: LFS, "Git LFS pointer"),
    "tail of ones": (lambda ok: ok + b"\xff" * 64, "garbage from byte"),
    "tail of letters": (lambda ok: ok + b"x" * 64, "garbage"),
    "tail of zeros": (lambda ok: ok + b"\0" * 64, "garbage from byte"),
    "no graph": (lambda ok: onnx.ModelProto(ir_version=8).SerializeToString(), "holds no graph"),
    "empty graph": (lambda ok: b"\x08\x08\x3a\x00", "holds no graph"),
    "name in Latin-1": (lambda ok: ok.replace(b"agraph", b"agr\xe4ph"), "not UTF-8"),
    "random": (lambda ok: np.random.default_rng(1).bytes(500), "not an ONNX model"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_what_is_no_model_says_what_it_is(tmp_path, proto, kind):
    build, words = MALFORMED[kind]
    path = tmp_path / "m.onnx"
    path.write_bytes(build(proto.SerializeToString()))
    with pytest.raises(ModelError, match=words) as caught:
        load(path)
    assert caught.value.code == "OB302"
    assert caught.value.hint


def test_a_pointer_says_what_to_type(tmp_path):
    (tmp_path / "m.onnx").write_bytes(LFS)
    with pytest.raises(ModelError) as caught:
        load(tmp_path / "m.onnx")
    assert caught.value.hint == "git lfs pull"


def test_every_cut_through_the_graph_is_noticed(proto):
    data = proto.SerializeToString()
    start = data.index(b"\x3a")
    for stop in range(start + 3, data.index(b"agraph")):
        with pytest.raises(ModelError, match="cut short"):
            formats.parse(data[:stop], "protobuf", "m")


@pytest.mark.parametrize("suffix", [".onnxtxt", ".json", ".textproto"])
@pytest.mark.parametrize("data", [b"hello {", b"\xff\xfe", b"{}", b"{" * 50_000])
def test_text_that_is_no_model(tmp_path, suffix, data):
    (tmp_path / f"m{suffix}").write_bytes(data)
    with pytest.raises(ModelError) as caught:
        load(tmp_path / f"m{suffix}")
    assert caught.value.code == "OB302"
    assert len(caught.value.message) < 400


def test_text_that_would_end_the_process_is_refused(tmp_path):
    body = '<ir_version: 8, opset_import: ["": 17]> a (float[2] x) => (float[2] y) {'
    (tmp_path / "m.onnxtxt").write_text(body + " y = If(x) <a = b () => () {" * 20_000)
    with pytest.raises(ModelError, match="levels deep"):
        load(tmp_path / "m.onnxtxt")


def test_graphs_nested_deeper_than_protobuf_goes_are_refused_honestly(tmp_path):
    graph = b"\x12\x01g"
    for _ in range(60):
        attribute = _field(1, b"a") + _field(6, graph) + b"\xa0\x01\x05"
        graph = _field(1, _field(4, b"If") + _field(5, attribute)) + _field(2, b"g")
    (tmp_path / "m.onnx").write_bytes(b"\x08\x08" + _field(7, graph) + _field(8, b"\x10\x11"))
    with pytest.raises(ModelError, match="more than 100 protobuf levels deep") as caught:
        load(tmp_path / "m.onnx")
    assert caught.value.code == "OB302"


def _field(number, payload):
    length = len(payload)
    varint = b""
    while length > 127:
        varint += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + varint + bytes([length]) + payload


# --- paths


def test_absent_with_a_near_name(written):
    with pytest.raises(ModelError, match="no file") as caught:
        load(written.with_name("n.onnx"))
    assert caught.value.code == "OB301"
    assert "'m.onnx'" in caught.value.hint


def test_absent_with_its_folder(tmp_path):
    with pytest.raises(ModelError) as caught:
        load(tmp_path / "nowhere" / "m.onnx")
    assert "there is no folder" in caught.value.hint


@pytest.mark.skipif(os.name == "nt", reason="needs FIFOs and links")
def test_what_is_no_regular_file(tmp_path, written):
    os.mkfifo(tmp_path / "fifo.onnx")
    (tmp_path / "dangling.onnx").symlink_to("gone.onnx")
    (tmp_path / "circle.onnx").symlink_to("circle.onnx")
    kinds = {
        tmp_path: "is a folder",
        tmp_path / "fifo.onnx": "is a FIFO",
        "/dev/null": "is a device",
        tmp_path / "dangling.onnx": "link to gone.onnx",
        tmp_path / "circle.onnx": "link to circle.onnx",
        written / "x.onnx": "cannot read x.onnx",
        tmp_path / "nul\0.onnx": "can be called",
        tmp_path / ("n" * 300): "too long",
    }
    for path, words in kinds.items():
        with pytest.raises(ModelError, match=words) as caught:
            load(path)
        assert caught.value.code == "OB301"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_no_permission(written):
    written.chmod(0)
    with pytest.raises(ModelError, match="no permission"):
        load(written)


# --- saving


def test_an_existing_target_stays_unless_forced(written, proto):
    before = written.read_bytes()
    proto.graph.name = "other"
    with pytest.raises(UsageError) as caught:
        save(Model(proto), written)
    assert (caught.value.code, "--force" in caught.value.hint) == ("OB202", True)
    assert written.read_bytes() == before
    save(Model(proto), written, force=True)
    assert load(written).proto.graph.name == "other"


def test_text_names_exactly_what_it_would_lose(tmp_path, proto):
    with pytest.raises(UsageError) as caught:
        save(Model(rich(proto)), tmp_path / "m.onnxtxt")
    assert caught.value.code == "OB203"
    for words in (
        "doc strings of nodes",
        "metadata of nodes",
        "quantization annotations",
        "sparse initializers",
        "denotations of types",
        "denotations of dimensions",
    ):
        assert words in caught.value.message
    assert "metadata of the model" not in caught.value.message  # that one is kept
    assert not files(tmp_path)
    save(Model(proto), tmp_path / "m.onnxtxt", allow_lossy=True)
    assert load(tmp_path / "m.onnxtxt").proto.graph.node[0].op_type == "Twice"


def test_text_names_the_type_it_cannot_read_back(tmp_path, proto):
    proto.graph.initializer.append(helper.make_tensor("i", TensorProto.INT4, [3], [1, -2, 3]))
    with pytest.raises(UsageError, match=r"INT4|int32_data") as caught:
        save(Model(proto), tmp_path / "m.onnxtxt")
    assert caught.value.code == "OB203"
    save(Model(proto), tmp_path / "m.onnxtxt", allow_lossy=True)
    assert files(tmp_path) == ["m.onnxtxt"]


def test_raw_bytes_and_nan_are_no_loss(tmp_path, proto):
    values = np.array([0.1, np.nan, -np.inf, 1e-40, -0.0], np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(values, "r"))
    proto.graph.node[1].attribute.append(helper.make_attribute("f", float("nan")))
    save(Model(proto), tmp_path / "m.json")
    back = load(tmp_path / "m.json").proto
    assert numpy_helper.to_array(back.graph.initializer[1]).tobytes() == values.tobytes()


@pytest.mark.parametrize("moment", ["_read_back", "_dump"])
def test_an_interrupt_in_the_middle_of_a_save_leaves_the_old_file_alone(written, proto, monkeypatch, moment):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = written.read_bytes()
    monkeypatch.setattr(saving, moment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(Model(proto), written, force=True)
    assert files(written.parent) == ["m.onnx"]
    assert written.read_bytes() == before


def test_a_file_that_does_not_read_back_takes_nobodys_place(written, proto, monkeypatch):
    monkeypatch.setattr(formats, "dump", lambda *_: b"\xff\xff")
    before = written.read_bytes()
    with pytest.raises(ModelError, match="nothing was written"):
        save(Model(proto), written, force=True)
    assert (files(written.parent), written.read_bytes()) == (["m.onnx"], before)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounting needs root")
def test_a_disk_that_is_really_full(tmp_path, proto):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        save(Model(proto), tmp_path / "m.onnx")
        before = (tmp_path / "m.onnx").read_bytes()
        proto.graph.initializer.append(numpy_helper.from_array(np.zeros(100_000, np.float32), "big"))
        with pytest.raises(MachineError) as caught:
            save(Model(proto), tmp_path / "m.onnx", force=True)
        assert caught.value.code == "OB402"
        assert (files(tmp_path), (tmp_path / "m.onnx").read_bytes()) == (["m.onnx"], before)
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_targets_that_are_no_files(tmp_path, written, proto):
    with pytest.raises(UsageError, match="is a folder"):
        save(Model(proto), tmp_path, force=True)
    with pytest.raises(UsageError, match="is not a file"):
        save(Model(proto), "/dev/null", force=True)
    with pytest.raises(UsageError, match="there is no folder"):
        save(Model(proto), tmp_path / "nowhere" / "m.onnx")
    (tmp_path / "link.onnx").symlink_to(written)
    with pytest.raises(UsageError) as caught:
        save(Model(proto), tmp_path / "link.onnx")
    assert caught.value.code == "OB202"


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_overwriting_a_link_leaves_what_it_points_at(tmp_path, written, proto):
    before = written.read_bytes()
    (tmp_path / "link.onnx").symlink_to(written)
    proto.graph.name = "other"
    save(Model(proto), tmp_path / "link.onnx", force=True)
    assert written.read_bytes() == before
    assert load(tmp_path / "link.onnx").proto.graph.name == "other"
