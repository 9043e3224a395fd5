"""Streams hand out what indexing does."""

import numpy as np
import pytest
import thalia_checkpoint as thalia


@pytest.fixture
def many(tmp_path):
    rng = np.random.default_rng(4)
    arrays = {f"layers.{i}.w": rng.normal(size=(50 + i, 300)).astype(np.float32) for i in range(30)}
    arrays["empty"] = np.zeros((0, 3), np.float32)
    arrays["scalar"] = np.array(2.5)
    for name, options in (("raw", {}), ("packed", {"compression": "plane_entropy"})):
        with thalia.Writer(tmp_path / f"{name}.thalia", durability="none", **options) as writer:
            for key, array in arrays.items():
                writer.add(key, array)
    return tmp_path, arrays


@pytest.mark.parametrize("name", ["raw", "packed"])
@pytest.mark.parametrize("order", ["as_asked", "file", "as_completed"])
def test_everything_arrives_once(many, name, order):
    folder, arrays = many
    with thalia.open(folder / f"{name}.thalia") as file:
        found = dict(file.stream(order=order, memory_bytes=4 << 20))
    assert set(found) == set(arrays)
    for key, array in arrays.items():
        assert (found[key].dtype == array.dtype and found[key].flags.writeable) or array.size == 0
        np.testing.assert_array_equal(found[key], array)


def test_names_come_in_the_order_asked_for(many):
    folder, arrays = many
    wanted = ["layers.7.w", "scalar", "layers.2/layers.2.w", "layers.7.w"]
    with thalia.open(folder / "raw.thalia") as file:
        found = list(file.stream(wanted))
        assert [key for key, _ in found] == wanted
        np.testing.assert_array_equal(found[2][1], arrays["layers.2.w"])
        with pytest.raises(KeyError):
            file.stream(["nope"])
        with pytest.raises(thalia.UsageError, match="as_asked"):
            file.stream(order="random")


def test_a_delta_is_streamed(many):
    folder, arrays = many
    with thalia.Writer(folder / "later.thalia", durability="none") as writer:
        for key, array in arrays.items():
            writer.add(key, array + 1)
    thalia.delta(folder / "raw.thalia", folder / "later.thalia", folder / "d.thalia")
    with thalia.open(folder / "d.thalia") as file:
        found = dict(file.stream())
    assert set(found) == set(arrays)
    for key, array in arrays.items():
        np.testing.assert_array_equal(found[key], array + 1)


def test_damage_ends_it_with_the_tensors_name(many):
    folder, _ = many
    path = folder / "raw.thalia"
    offset = thalia.open(path).tensors["layers.9.w"]._source.offset
    with open(path, "r+b") as raw:
        raw.seek(offset + 999)
        raw.write(b"!")
    with thalia.open(path) as file, pytest.raises(thalia.IntegrityError) as error:
        list(file.stream())
    assert error.value.tensor == "layers.9.w"


def test_a_stream_may_be_left_early_and_outlive_the_file(many):
    folder, arrays = many
    file = thalia.open(folder / "raw.thalia")
    stream = file.stream()
    name, array = next(stream)
    file.close()
    del stream
    np.testing.assert_array_equal(array, arrays[name])


@pytest.mark.parametrize("name", ["raw", "packed"])
def test_tensors_arrive_in_memory_that_is_there(many, name):
    folder, arrays = many
    with thalia.open(folder / f"{name}.thalia") as file:
        tensors = list(file.tensors.values())
        own = {i: np.zeros_like(arrays[t.name]) for i, t in enumerate(tensors) if i % 2 and t.size}
        stream = file.open_stream(tensors, "file", 0, None, [own.get(i) for i in range(len(tensors))])
        found = {}
        while (arrived := stream.next()) is not None:
            found[arrived[0]] = arrived[1]
        assert {i for i, data in found.items() if data is None} == set(own)
        for i, tensor in enumerate(tensors):
            array = own[i] if i in own else tensor.array_of(found[i])
            np.testing.assert_array_equal(array, arrays[tensor.name])


def test_memory_that_does_not_fit_a_tensor_is_refused(many):
    folder, arrays = many
    with thalia.open(folder / "raw.thalia") as file:
        tensor = file.tensors["layers.9.w"]
        own = np.zeros_like(arrays["layers.9.w"])
        with pytest.raises(thalia.UsageError, match=r"layers\.9\.w.*: got a tensor twice"):
            file.open_stream([tensor, tensor], "file", 0, None, [own, None])
        with pytest.raises(thalia.UsageError, match="destinations"):
            file.open_stream([tensor], "file", 0, None, [])
        with pytest.raises(thalia.UsageError, match="destination"):
            file.open_stream([tensor], "file", 0, None, [own[1:]]).next()
        own.flags.writeable = False
        with pytest.raises((BufferError, ValueError)):
            file.open_stream([tensor], "file", 0, None, [own])
