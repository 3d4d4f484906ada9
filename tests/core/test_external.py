"""The rule for external data, and what a save does with it."""

import io
import os
import resource
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxbench.core import formats
from onnxbench.core.model import Model, load, save
from onnxbench.core.weights import array, locate, tensor_bytes
from onnxbench.errors import ModelError, UsageError

needs_links = pytest.mark.skipif(os.name == "nt", reason="needs links")


@pytest.fixture
def saved(tmp_path, adding):
    """Write a model of these tensors into a folder of its own, and load it."""

    def make(*tensors, name="m.onnx"):
        (tmp_path / "home").mkdir(exist_ok=True)
        (tmp_path / "home" / name).write_bytes(adding(*tensors).SerializeToString())
        return load(tmp_path / "home" / name)

    return make


def files(folder):
    return sorted(p.name for p in folder.iterdir())


def initializers(model):
    return [array(model, tensor).tolist() for tensor in model.proto.graph.initializer]


def places(proto):
    return [{e.key: e.value for e in t.external_data} for t in proto.graph.initializer]


# --- reading


@pytest.mark.parametrize("offset, length", [(4, 8), (4, None), (None, 8), (None, None), ("04", "8")])
def test_offset_and_length_may_be_left_out(saved, external, tmp_path, floats, offset, length):
    model = saved(external("w", "w.data", offset, length))
    (tmp_path / "home" / "w.data").write_bytes(floats(9).tobytes())
    start = int(offset or 0) // 4
    assert initializers(model) == [[start, start + 1]]


BAD = {
    "parent": ("../w.data", 0, 8, "outside"),
    "parent behind a folder": ("sub/../../w.data", 0, 8, "outside"),
    "parent in the way of Windows": (r"..\w.data", 0, 8, "outside"),
    "absolute": ("/etc/hostname", 0, 8, "outside"),
    "drive": (r"C:\w.data", 0, 8, "outside"),
    "drive without a root": ("C:w.data", 0, 8, "outside"),
    "share": (r"\\server\w.data", 0, 8, "outside"),
    "empty": ("", 0, 8, "outside"),
    "no location": (None, 0, 8, "outside"),
    "NUL": ("w.data\0", 0, 8, "outside"),
    "missing": ("nope.data", 0, 8, "is missing"),
    "a folder": (".", 0, 8, "is missing"),
    "a long name": ("n" * 5000, 0, 8, "is missing"),
    "negative offset": ("w.data", -8, 8, "bad offset"),
    "odd offset": ("w.data", "0x4", 8, "bad offset"),
    "spaced offset": ("w.data", " 4", 8, "bad offset"),
    "offset in other digits": ("w.data", "٤", 8, "bad offset"),
    "huge offset": ("w.data", "9" * 30, 8, "bad offset"),
    "negative length": ("w.data", 0, -1, "bad length"),
    "another length": ("w.data", 0, 12, "need 8 bytes"),
    "beyond the end": ("w.data", 32, 8, "which has only 36 bytes"),
    "without a length beyond the end": ("w.data", 32, None, "which has only 36 bytes"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_the_rule_refuses(saved, external, tmp_path, floats, kind):
    location, offset, length, words = BAD[kind]
    for folder in (tmp_path, tmp_path / "home"):
        folder.mkdir(exist_ok=True)
        (folder / "w.data").write_bytes(floats(9).tobytes())
    model = saved(external("w", location, offset, length))
    for call in (locate, array, tensor_bytes):
        with pytest.raises(ModelError, match=words) as caught:
            call(model, model.proto.graph.initializer[0])
        assert caught.value.code == "OB304"
        assert "'w'" in caught.value.message


def test_an_entry_given_twice_is_refused(saved, external, tmp_path):
    (tmp_path / "secret").write_bytes(b"12345678")
    tensor = external("w", "w.data")
    tensor.external_data.add(key="location", value="../secret")
    with pytest.raises(ModelError, match="twice"):
        array(saved(tensor), tensor)


def test_a_stream_has_no_external_data(adding, external):
    model = load("-", stdin=io.BytesIO(adding(external("w", "w.data")).SerializeToString()))
    with pytest.raises(ModelError, match="not at hand"):
        array(model, model.proto.graph.initializer[0])


@needs_links
def test_links_out_of_the_folder_are_refused(saved, external, tmp_path, floats):
    model = saved(external("w", "w.data"))
    (tmp_path / "secret").write_bytes(floats(2).tobytes())
    (tmp_path / "home" / "w.data").symlink_to(tmp_path / "secret")
    with pytest.raises(ModelError, match="link out of the model's folder"):
        locate(model, model.proto.graph.initializer[0])


@needs_links
def test_a_linked_folder_inside_is_looked_through(saved, external, tmp_path, floats):
    model = saved(external("w", "sub/w.data"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "w.data").write_bytes(floats(2).tobytes())
    (tmp_path / "home" / "sub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="link out"):
        locate(model, model.proto.graph.initializer[0])


@pytest.fixture
def cache(tmp_path, adding, external, floats):
    """A model as the Hugging Face hub keeps it: model and data are links into one folder of blobs."""
    snapshot, blobs = tmp_path / "snapshots" / "abc", tmp_path / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "b1").write_bytes(adding(external("w", "model.onnx.data")).SerializeToString())
    (blobs / "b2").write_bytes(floats(2, 5).tobytes())
    (snapshot / "model.onnx").symlink_to("../../blobs/b1")
    (snapshot / "model.onnx.data").symlink_to("../../blobs/b2")
    return snapshot / "model.onnx"


@needs_links
def test_a_hugging_face_cache_is_read(cache, tmp_path):
    model = load(cache)
    weight = locate(model, model.proto.graph.initializer[0])
    assert weight.file == (tmp_path / "blobs" / "b2").resolve()
    assert initializers(model) == [[5, 6]]


@needs_links
def test_a_model_saved_into_the_cache_does_not_refer_to_a_link(cache):
    save(load(cache), cache.with_name("new.onnx"))
    again = load(cache.with_name("new.onnx"))
    assert locate(again, again.proto.graph.initializer[0]).file.parent == cache.parent.resolve()
    assert initializers(again) == [[5, 6]]


@needs_links
def test_data_beside_the_real_file_of_a_link_is_found(saved, external, tmp_path, floats):
    saved(external("w", "w.data"))
    (tmp_path / "home" / "w.data").write_bytes(floats(2, 7).tobytes())
    (tmp_path / "link.onnx").symlink_to(tmp_path / "home" / "m.onnx")
    assert initializers(load(tmp_path / "link.onnx")) == [[7, 8]]


# --- saving


@pytest.fixture
def big(saved, external, tmp_path, floats):
    """Two tensors used out of a data file that holds more: a small one, and one larger than 64 KB."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "w.data").write_bytes(floats(50_000).tobytes())
    large = external("large", "w.data", 40_000, 80_000, dims=[20_000])
    return saved(external("small", "w.data", 12, 8), large, external("again", "w.data", 12, 8))


def test_in_the_same_folder_the_data_is_referred_to(big, tmp_path):
    save(big, tmp_path / "home" / "other.onnx")
    assert files(tmp_path / "home") == ["m.onnx", "other.onnx", "w.data"]
    assert (tmp_path / "home" / "other.onnx").read_bytes() == (tmp_path / "home" / "m.onnx").read_bytes()


def test_a_checksum_stays(saved, external, tmp_path, floats):
    tensor = external("w", "w.data")
    tensor.external_data.add(key="checksum", value="abc")
    model = saved(tensor)
    (tmp_path / "home" / "w.data").write_bytes(floats(2).tobytes())
    save(model, tmp_path / "m.onnx")
    assert places(load(tmp_path / "m.onnx").proto)[0]["checksum"] == "abc"


def test_into_another_folder_only_the_needed_bytes_are_copied(big, tmp_path):
    before = big.proto.SerializeToString()
    (tmp_path / "out").mkdir()
    save(big, tmp_path / "out" / "m.onnx")
    model = load(tmp_path / "out" / "m.onnx")
    assert initializers(model) == initializers(big)
    small, large, again = places(model.proto)
    assert small == again
    assert int(large["offset"]) % 4096 == 0
    [data] = [p for p in (tmp_path / "out").iterdir() if p.suffix == ".data"]
    assert data.name.startswith("m-")
    assert len(data.stem) == len("m-") + 12
    assert data.stat().st_size == 4096 + 80_000
    assert big.proto.SerializeToString() == before


def test_a_folder_above_gets_a_copy_too(big, tmp_path):
    save(big, tmp_path / "m.onnx")
    assert all("/" not in place["location"] for place in places(load(tmp_path / "m.onnx").proto))


def test_saving_again_makes_no_second_data_file(big, tmp_path):
    save(big, tmp_path / "m.onnx")
    before = files(tmp_path)
    save(big, tmp_path / "m.onnx", force=True)
    assert files(tmp_path) == before


def test_a_stream_gets_all_bytes(big):
    out = io.BytesIO()
    save(big, "-", stdout=out)
    assert initializers(load("-", stdin=io.BytesIO(out.getvalue()))) == initializers(big)


def test_missing_data_writes_nothing(saved, external, tmp_path):
    model = saved(external("w", "nope.data"))
    with pytest.raises(ModelError) as caught:
        save(model, tmp_path / "m.onnx")
    assert caught.value.code == "OB304"
    assert files(tmp_path) == ["home"]


def test_a_graph_that_cannot_take_its_place_takes_its_data_away(big, tmp_path, monkeypatch):
    replace = type(tmp_path).replace

    def interrupt(self, target):
        if target.suffix == ".onnx":
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(type(tmp_path), "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(big, tmp_path / "m.onnx")
    assert files(tmp_path) == ["home"]


def test_what_protobuf_cannot_hold_goes_beside_the_graph(tmp_path, adding, floats, monkeypatch):
    monkeypatch.setattr(formats, "LIMIT", 100_000)
    tensors = [numpy_helper.from_array(floats(count), name) for count, name in ((30_000, "a"), (10, "b"), (600, "c"))]
    model = Model(adding(*tensors))
    save(model, tmp_path / "m.onnx")
    again = load(tmp_path / "m.onnx")
    assert initializers(again) == initializers(model)
    assert [bool(place) for place in places(again.proto)] == [True, False, True]
    assert (tmp_path / "m.onnx").stat().st_size < 2000


def test_a_stream_that_protobuf_cannot_hold_is_refused(big, monkeypatch):
    monkeypatch.setattr(formats, "LIMIT", 50_000)
    with pytest.raises(UsageError) as caught:
        save(big, "-", stdout=io.BytesIO())
    assert caught.value.code == "OB203"


# --- beyond the memory


@pytest.mark.skipif(sys.platform != "linux", reason="needs sparse files and getrusage in kilobytes")
def test_three_gigabytes_are_referred_to_and_a_part_of_them_copied(saved, external, tmp_path):
    size = 3 * 2**30
    home = tmp_path / "home"
    huge = saved(external("w", "w.data", 0, size, dims=[size // 4]))
    with (home / "w.data").open("wb") as file:
        file.truncate(size)
        file.seek(size - 8)
        file.write(np.array([3, 4], np.float32).tobytes())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(tensor_bytes(huge, huge.proto.graph.initializer[0])) == size
    assert array(huge, huge.proto.graph.initializer[0])[-2:].tolist() == [3, 4]
    save(huge, home / "same.onnx")
    part = saved(external("w", "w.data", size - 8, 8), name="part.onnx")
    save(part, tmp_path / "part.onnx")
    assert initializers(load(tmp_path / "part.onnx")) == [[3, 4]]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024
    assert (home / "same.onnx").stat().st_size < 1000


def test_onnx_itself_reads_what_was_saved(big, tmp_path):
    (tmp_path / "out").mkdir()
    save(big, tmp_path / "out" / "m.onnx")
    proto = onnx.load(tmp_path / "out" / "m.onnx")
    assert numpy_helper.to_array(proto.graph.initializer[0]).tolist() == [3, 4]
