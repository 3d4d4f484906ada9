import numpy as np
import pytest
from onnx import OptionalProto, TensorProto, helper, numpy_helper

from onnxbench.core.compare import differ_all
from onnxbench.core.feed_files import check, read, write_data_set, write_npz
from onnxbench.core.feeds import generate
from onnxbench.core.graph import GraphView
from onnxbench.errors import ModelError, NameNotFound, UsageError

TYPES = [code for code in TensorProto.DataType.values() if code != TensorProto.UNDEFINED]


def tensors(**types):
    infos = [helper.make_tensor_value_info(name, *declared) for name, declared in types.items()]
    return of(*infos)


def of(*infos):
    graph = helper.make_graph([], "g", list(infos), [])
    return GraphView(helper.make_model(graph), graph)


@pytest.fixture
def small():
    return tensors(x=(TensorProto.FLOAT, ["n", 3]))


@pytest.fixture
def value():
    return np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("dims", [[], [0, 2], [3]], ids=str)
@pytest.mark.parametrize("code", TYPES)
def test_data_sets_and_npz_bring_back_every_type(tmp_path, code, dims):
    tensor = helper.make_tensor_type_proto(code, dims)
    sequence = helper.make_sequence_type_proto(tensor)
    kinds = {"t": tensor, "s": sequence, "o": helper.make_optional_type_proto(tensor)}
    view = of(*(helper.make_value_info(name, kind) for name, kind in kinds.items()))
    feeds = generate(view)
    write_data_set(tmp_path, feeds, feeds, view)
    assert not differ_all(feeds, read(str(tmp_path), view))
    assert len(list(tmp_path.glob("output_*.pb"))) == 3

    alone = tensors(t=(code, dims))
    left = write_npz(tmp_path / "a.npz", {"t": feeds["t"]})
    if not left:
        assert not differ_all({"t": feeds["t"]}, read(str(tmp_path / "a.npz"), alone))


def test_empty_optionals_and_sequences_come_back(tmp_path):
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2]))
    optional = helper.make_optional_type_proto(sequence)
    view = of(
        *(helper.make_value_info(name, kind) for name, kind in {"s": sequence, "o": optional, "p": optional}.items())
    )
    feeds = {"s": [], "o": None, "p": []}
    write_data_set(tmp_path, feeds, None, view)
    assert read(str(tmp_path), view) == feeds
    empty = OptionalProto.FromString((tmp_path / "input_1.pb").read_bytes())
    assert (empty.name, empty.elem_type) == ("o", OptionalProto.SEQUENCE)


def test_npz_names_what_it_leaves_out(tmp_path):
    view = tensors(b=(TensorProto.BFLOAT16, [2]), file=(TensorProto.FLOAT, [2]), q=(TensorProto.INT4, [2]))
    feeds = {**generate(view), "s": [np.zeros(1)], "o": None, "z": np.array(["a\0"], object)}
    assert write_npz(tmp_path / "a.npz", feeds) == ["b", "q", "s", "o", "z"]
    assert np.load(tmp_path / "a.npz").files == ["file"]


@pytest.mark.parametrize("code", [TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN])
def test_raw_bytes_of_an_npz_are_viewed_as_declared(tmp_path, code):
    view = tensors(x=(code, [4]))
    feeds = generate(view)
    np.savez(tmp_path / "raw.npz", x=feeds["x"].view(f"V{feeds['x'].dtype.itemsize}"))
    assert not differ_all(feeds, read(str(tmp_path / "raw.npz"), view))


def test_one_value_files(tmp_path, small, value):
    np.save(tmp_path / "x.npy", value)
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(value, "other").SerializeToString())
    np.savez(tmp_path / "x.npz", value)
    for name in ("x.npy", "x.pb", "x.npz"):
        assert not differ_all({"x": value}, read(str(tmp_path / name), small))


def test_a_folder_with_one_data_set_and_unnamed_files(tmp_path, value):
    view = tensors(x=(1, ["n", 3]), y=(7, []))
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    (folder / "input_0.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())
    (folder / "input_1.pb").write_bytes(numpy_helper.from_array(np.array(5)).SerializeToString())
    assert not differ_all({"x": value, "y": np.array(5)}, read(str(tmp_path), view))
    (tmp_path / "test_data_set_1").mkdir()
    with pytest.raises(UsageError, match="2 test data sets"):
        read(str(tmp_path), view)


def test_polygraphy_json(tmp_path, small, value):
    from polygraphy.json import save_json

    save_json([{"x": value}, {"x": value + 1}], str(tmp_path / "inputs.json"))
    assert not differ_all({"x": value}, read(str(tmp_path / "inputs.json"), small))
    save_json({"x": value}, str(tmp_path / "other.json"))
    with pytest.raises(ModelError, match="list of dicts"):
        read(str(tmp_path / "other.json"), small)


SCRIPT = """
import numpy as np
X = np.arange(6, dtype=np.float32).reshape(2, 3)
def one(): return {"x": X}
def lazily():
    yield {"x": X}
    raise RuntimeError("asked for more than the first")
def listed(): return [{"x": X}]
def broken(): raise RuntimeError("no\\ndata")
def leaving(): raise SystemExit(3)
def nothing(): return []
def wrong(): return 5
"""


@pytest.mark.parametrize("function", ["one", "lazily", "listed"])
def test_scripts(tmp_path, small, value, function):
    (tmp_path / "with:colon.py").write_text(SCRIPT)
    assert not differ_all({"x": value}, read(f"{tmp_path}/with:colon.py:{function}", small))


@pytest.mark.parametrize(
    "function, text",
    [
        ("broken", "RuntimeError: no data"),
        ("leaving", "SystemExit: 3"),
        ("nothing", "no dict"),
        ("wrong", "TypeError"),
        ("no", "no function no"),
    ],
)
def test_scripts_that_fail_say_so_in_a_line(tmp_path, small, function, text):
    (tmp_path / "load.py").write_text(SCRIPT)
    with pytest.raises(ModelError, match=text) as caught:
        read(f"{tmp_path}/load.py:{function}", small)
    assert caught.value.code == "OB307"
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.pb", "a.json"])
def test_damaged_files_are_refused(tmp_path, small, name):
    (tmp_path / name).write_bytes(b"\x80\x04nonsense")
    with pytest.raises(ModelError) as caught:
        read(str(tmp_path / name), small)
    assert caught.value.code == "OB307"


def test_pickles_are_never_run(tmp_path, small):
    np.savez(tmp_path / "a.npz", x=np.array([{}], object))
    with pytest.raises(ModelError, match="pickle"):
        read(str(tmp_path / "a.npz"), small)


@pytest.mark.parametrize("text, code", [("no.npz", "OB301"), ("no.py:f", "OB301")])
def test_absent_files(tmp_path, small, text, code):
    with pytest.raises(ModelError) as caught:
        read(str(tmp_path / text), small)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "feeds, error, code, text",
    [
        ({}, UsageError, "OB206", "no value is given for 'x'"),
        ({"X": 0}, NameNotFound, "OB303", "no input named 'X'"),
        ({"x": np.zeros((2, 3))}, UsageError, "OB206", "declared float32, and gets float64"),
        ({"x": np.zeros(3, np.float32)}, UsageError, "OB206", "declared 'nx3', and gets '3'"),
        ({"x": np.zeros((2, 4), np.float32)}, UsageError, "OB206", "declared 'nx3', and gets '2x4'"),
        ({"x": None}, UsageError, "OB206", "gets nothing"),
        ({"x": []}, UsageError, "OB206", "gets a sequence"),
    ],
)
def test_what_check_refuses(small, feeds, error, code, text):
    with pytest.raises(error, match=text) as caught:
        check(feeds, small)
    assert caught.value.code == code


def test_check_keeps_scalars_scalar_and_takes_the_other_byte_order():
    view = tensors(x=(TensorProto.FLOAT, []))
    checked = check({"x": np.array(1, ">f4")}, view)["x"]
    assert (checked.shape, checked.dtype) == ((), np.dtype(np.float32))


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
@pytest.mark.parametrize("data", [b"", b"hello there", b"PK\x03\x04 cut short", b"\x80\x04N."])
def test_a_file_that_is_none_of_numpys_is_called_that(tmp_path, small, suffix, data):
    place = tmp_path / f"junk{suffix}"
    place.write_bytes(data)
    with pytest.raises(ModelError, match=f"is no {suffix} file") as caught:
        read(str(place), small)
    assert caught.value.code == "OB307"
