"""Values come out of a package as they went in, also of files."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from onnx import TensorProto, helper, numpy_helper

from onnxbench.runtimes import packing
from onnxbench.runtimes.packing import pack, spill, unpack

NARROW = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
SHARED = ["uint4", "int4", "float4_e2m1fn", "uint2", "int2"]
PLAIN = ["f4", "u1", "i1", "u2", "i2", "i4", "i8", "?", "f2", "f8", "u4", "u8", "c8", "c16"]


def every_pattern(name, count=256):
    """An array of a narrow type with all its bit patterns."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = packing.BITS.get(packing.ELEMENT_TYPES[name], 8 * dtype.itemsize)
    if name in packing.DTYPE_NAMES.values() and name.startswith(("int", "uint")):
        low = -(1 << bits - 1) if name.startswith("int") else 0
        return np.arange(low, low + (1 << bits)).astype(dtype)
    carrier = np.uint16 if dtype.itemsize == 2 else np.uint8
    return np.arange(1 << bits).astype(carrier).view(dtype)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", NARROW + SHARED)
def test_every_bit_pattern_of_a_narrow_type_survives(name):
    array = every_pattern(name)
    for given_ in (array, array[:-1], array[:1].reshape(()), array[:0], array.reshape(2, -1)):
        assert same(unpack(pack(given_)), given_)


@pytest.mark.parametrize("name", NARROW + SHARED)
def test_bytes_are_as_onnx_packs_them(name):
    array = every_pattern(name)[:3]
    assert pack(array)[1] == helper.np_dtype_to_tensor_dtype(array.dtype)
    assert pack(array)[3] == numpy_helper.from_array(array).raw_data


def test_the_table_is_that_of_onnx():
    for name, number in packing.ELEMENT_TYPES.items():
        if number in TensorProto.DataType.values():
            assert helper.tensor_dtype_to_np_dtype(number).name == name


@given(st.sampled_from(PLAIN).flatmap(lambda d: arrays.arrays(d, arrays.array_shapes(min_dims=0, min_side=0))))
def test_arrays_of_numpy_survive(array):
    assert same(unpack(pack(array)), array)


@given(st.lists(st.text(st.characters(codec="utf-8")), max_size=6))
def test_strings_survive(texts):
    array = np.empty(len(texts), object)
    array[:] = texts
    assert unpack(pack(array)).tolist() == texts


def test_strings_of_any_numpy_kind_become_str():
    for array in (np.array(["a", "bc"]), np.array([b"a", b"bc"]), np.array(["a", b"bc"], object)):
        assert unpack(pack(array)).tolist() == ["a", "bc"]


def test_what_is_no_array_survives():
    assert unpack(pack(None)) is None
    assert unpack(pack([])) == []
    nested = unpack(pack([np.ones(2), [np.zeros(1, np.int8), None]]))
    assert nested[0].tolist() == [1, 1]
    assert nested[1][0].dtype == np.int8
    assert nested[1][1] is None
    assert unpack(pack(3.5)) == 3.5
    keys, values = unpack(pack({2: 0.5, 1: 0.25}))
    assert (keys.tolist(), values.tolist()) == ([1, 2], [0.25, 0.5])


def test_foreign_byte_order_is_turned():
    array = np.array([1, 2, 3], ">f4")
    assert unpack(pack(array)).tolist() == [1, 2, 3]


def test_what_is_not_contiguous_survives():
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    for view in (array.T, array[:, 1:3], array[::-1]):
        assert unpack(pack(view)).tolist() == view.tolist()


@pytest.fixture
def mapped(tmp_path):
    """Numbers in a file, beyond its first page, mapped."""
    np.concatenate([np.full(3000, -1, np.float32), np.arange(5000, dtype=np.float32)]).tofile(tmp_path / "numbers")

    def make(mode="r"):
        return np.memmap(tmp_path / "numbers", np.float32, mode, 12000, (50, 100))

    return make


def test_a_mapped_array_stays_in_its_file(mapped):
    packed = pack(mapped())
    assert packed[0] == "map"
    assert same(np.asarray(unpack(packed)), np.arange(5000, dtype=np.float32).reshape(50, 100))


@pytest.mark.parametrize(
    "cut",
    [
        lambda a: a[10:],
        lambda a: a[3],
        lambda a: a[7, 5],
        lambda a: a[:, 3:9],
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a.view(np.int32),
        lambda a: a[10:].reshape(-1)[5:],
        lambda a: a[:0],
        lambda a: a.copy(),
    ],
)
def test_a_part_of_a_mapped_array_is_that_part(mapped, cut):
    view = cut(mapped())
    assert same(np.asarray(unpack(pack(view))), np.asarray(view))


def test_what_was_written_over_a_private_mapping_counts(mapped):
    array = mapped("c")
    array[0, 0] = 77
    assert unpack(pack(array))[0, 0] == 77


def test_large_tensors_are_spilled_and_small_ones_are_not(tmp_path):
    place = str(tmp_path / "spilled")
    large, small = np.arange(40_001, dtype=np.float32), np.arange(4)
    first, second = (spill(pack(a), place) for a in (large, large[::-1]))
    assert (first[0], second[0]) == ("map", "map")
    assert spill(pack(small), place)[0] == "tensor"
    assert spill(pack(large), None)[0] == "tensor"
    assert unpack(first).tolist() == large.tolist()
    assert unpack(second).tolist() == large[::-1].tolist()
    assert second[4] % 64 == 0


@pytest.mark.parametrize("name", NARROW + SHARED)
def test_spilled_narrow_types_are_right(tmp_path, name):
    array = np.tile(every_pattern(name), 70_000)[:140_001]
    assert same(np.asarray(unpack(spill(pack(array), str(tmp_path / "s")))), array)


def test_sequences_are_spilled_by_element(tmp_path):
    large = np.arange(40_000, dtype=np.float32)
    packed = spill(pack([large, np.ones(1), None]), str(tmp_path / "s"))
    back = unpack(packed)
    assert packed[1][0][0] == "map"
    assert back[0].tolist() == large.tolist()
    assert back[1:] == [1.0, None]
