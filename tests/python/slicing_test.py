"""Indexing a tensor in a file gives what indexing the array does."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from thalia_checkpoint._files.slicing import plan

DTYPES = ["<f8", "<f4", "<f2", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "?", "<c8"]


def indices(shape):
    return hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_basic_index_of_any_array(data):
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    array = np.random.default_rng(3).integers(0, 2, shape).astype(dtype)
    compression = data.draw(st.sampled_from([None, "zstd"]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.thalia"
        with thalia.Writer(path, compression=compression, durability="none") as writer:
            writer.add("r/w", array)
        tensor = thalia.open(path)["w"]
        np.testing.assert_array_equal(tensor.numpy(), array)
        for _ in range(5):
            index = data.draw(indices(shape))
            found, expected = tensor[index], array[index]
            assert np.shape(found) == np.shape(expected)
            np.testing.assert_array_equal(found, expected)


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=40),
        hnp.arrays(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, max_dims=3, max_side=4)),
        max_size=6,
    ),
    st.dictionaries(st.text(max_size=20), st.integers() | st.text(max_size=20), max_size=4),
)
def test_any_names_come_back(arrays, metadata):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.thalia"
        with thalia.Writer(path, durability="none") as writer:
            for name, array in arrays.items():
                writer.add(name, array, region="r")
            writer.metadata = metadata
        with thalia.open(path) as file:
            assert file.metadata == metadata
            assert set(file.tensors) == set(arrays)
            for name, array in arrays.items():
                read = file.tensors[name].numpy()
                assert read.dtype == array.dtype and read.tobytes() == array.tobytes()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_basic_index_of_a_delta(data):
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    base, array = np.random.default_rng(3).integers(0, 2, (2, *shape)).astype(dtype)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("base.thalia", "new.thalia", "delta.thalia")]
        for path, values in zip(paths, (base, array), strict=False):
            with thalia.Writer(path, durability="none") as writer:
                writer.add("r/w", values)
        thalia.delta(*paths, durability="none")
        tensor = thalia.open(paths[2])["w"]
        np.testing.assert_array_equal(tensor.numpy(), array)
        for _ in range(5):
            index = data.draw(indices(shape))
            found, expected = tensor[index], array[index]
            assert np.shape(found) == np.shape(expected)
            np.testing.assert_array_equal(found, expected)


def test_what_is_out_of_bounds_is_an_index_error(sample):
    path, _ = sample
    tensor = thalia.open(path)["encoder/weight"]
    for index in (6, -7, (0, 5), (0, 0, 0), (..., ...)):
        with pytest.raises(IndexError):
            tensor[index]


def test_other_indices_are_those_of_the_whole_array(sample):
    path, arrays = sample
    tensor, array = thalia.open(path)["encoder/weight"], arrays["encoder/weight"]
    for index in ([0, 2], np.array([[1], [3]]), array > 0, (slice(1, 3), [0, 4])):
        assert plan(index, array.shape) is None
        np.testing.assert_array_equal(tensor[index], array[index])


def test_only_the_ranges_are_planned():
    planned = plan((slice(8, 2, -2), 3), (10, 5))
    assert planned.ranges == [(4, 9), (3, 4)] and planned.shape == (5, 1)
    assert plan(slice(2, 5), (10, 5)).ranges == [(2, 5), (0, 5)]
    assert plan((..., 1), (2, 3, 4)).ranges == [(0, 2), (0, 3), (1, 2)]
