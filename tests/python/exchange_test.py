"""Arrays that are handed over by DLPack and the buffer protocol, in both directions."""

import array
import ctypes
import gc
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint._files.elements import elements
from thalia_checkpoint.numpy import load_file, save_file

WEIGHT = np.arange(12, dtype=np.float32).reshape(3, 4)


class Exporter:
    """An array of which nothing is known but DLPack."""

    def __init__(self, array, device=(1, 0), versions=True):
        self.array = array
        self.device = device
        self.versions = versions

    def __dlpack__(self, **options):
        if options and not self.versions:
            raise TypeError("no such argument")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


@pytest.mark.parametrize("versions", [True, False])
@pytest.mark.parametrize(
    "values",
    [
        *(np.arange(6).astype(code).reshape(2, 3) for code in "fdeFDbhilBHIL?"),
        WEIGHT.T, WEIGHT[::-1, ::2], np.zeros((0, 3)), np.array(2.5), np.arange(9)[1:],
    ],
    ids=lambda values: f"{values.dtype}-{values.shape}",
)  # fmt: skip
def test_what_has_dlpack_alone_is_written(path, values, versions):
    with thalia.Writer(path, durability="none") as writer:
        writer.add("r/w", Exporter(values, versions=versions))
    found = thalia.open(path)["w"].numpy()
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


def test_nothing_is_copied_that_is_contiguous():
    buffers = [
        WEIGHT, read_only(WEIGHT), Exporter(WEIGHT), Exporter(WEIGHT, versions=False), Exporter(read_only(WEIGHT)),
        memoryview(WEIGHT), array.array("f", range(12)), bytearray(48), bytes(48), (ctypes.c_float * 12)(),
        memoryview(bytes(48)).cast("f", (3, 4)),
    ]  # fmt: skip
    for buffer in buffers:
        found = elements("w", buffer)
        source = buffer.array if isinstance(buffer, Exporter) else buffer
        assert np.shares_memory(found.data, np.frombuffer(source, np.uint8)), buffer
        assert np.asarray(found.data).nbytes == 48


def test_the_memory_stays_until_it_is_written(path):
    with thalia.Writer(path, durability="none") as writer:
        for i in range(50):
            writer.add(f"r/w{i}", Exporter(np.full(1000, i)))
            gc.collect()
    with thalia.open(path) as file:
        assert all((file[f"w{i}"].numpy() == i).all() for i in range(50))


def test_buffers_are_written_with_their_types(tmp_path):
    buffers = {
        "array": array.array("h", [1, -2, 3]),
        "view": memoryview(WEIGHT)[1:],
        "strided": memoryview(WEIGHT.reshape(-1))[::3],
        "bytearray": bytearray(b"\0\1\xff"),
        "bytes": b"\0\1\xff\0",
        "ctypes": (ctypes.c_double * 3)(1, 2, 3),
    }
    for name in ("f.thalia", "f.safetensors"):
        save_file(buffers, tmp_path / name)
        found = load_file(tmp_path / name)
        for key, buffer in buffers.items():
            expected = np.frombuffer(buffer, np.uint8) if isinstance(buffer, bytes) else np.asarray(buffer)
            assert found[key].dtype == expected.dtype
            np.testing.assert_array_equal(found[key], expected)
    with thalia.Writer(tmp_path / "raw.thalia") as writer:
        writer.add_bytes("r/w", "bf16", (2, 3), bytearray(range(12)))
        writer.add_bytes("r/v", "f32", (3, 4), memoryview(WEIGHT))
    with thalia.open(tmp_path / "raw.thalia") as file:
        assert file["w"].raw() == bytes(range(12)) and file["w"].dtype == "bf16"
        np.testing.assert_array_equal(file["v"].numpy(), WEIGHT)


def test_other_devices_and_types_are_told(path):
    class Broken(Exporter):
        def __dlpack__(self, **options):
            raise BufferError("needs a gradient")

    cases = [
        (Exporter(WEIGHT, device=(2, 1)), r"r/w: .*Exporter on the CUDA device 1; expected memory of the CPU"),
        (Exporter(WEIGHT, device=(99, 0)), "DLPack type 99 device 0"),
        (Broken(WEIGHT), "needs a gradient"),
        (Exporter(np.zeros(3, np.longdouble)), "r/w: .*handed over: .*longdouble"),
        (array.array("u", "text"), "r/w: a file cannot hold elements of numpy's"),
        ("text", "r/w: a file cannot hold"),
        (object(), "r/w: a file cannot hold elements of numpy's object"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), r"r/w: .*masked array; expected its filled\(\) and its mask"),
    ]
    with thalia.Writer(path) as writer:
        for value, words in cases:
            with pytest.raises(thalia.UnsupportedError, match=words) as error:
                writer.add("r/w", value)
            assert error.value.tensor == "r/w"
        writer.add("r/w", Exporter(WEIGHT, device=(3, 0)))  # pinned memory is the CPU's too


def test_tensors_of_files_are_written_as_they_are(tmp_path):
    source, copy = tmp_path / "a.thalia", tmp_path / "b.thalia"
    with thalia.Writer(source, compression="zstd") as writer:
        writer.add("r/bf16", np.arange(7).astype(ml_dtypes.bfloat16))
        writer.add("r/i4", np.array([1, -2, 7], ml_dtypes.int4))
        writer.add_bytes("r/ternary", "ternary", (5,), b"\x01\x02")
        writer.add("r/csr", thalia.CsrArrays(np.array([0, 1, 2]), np.array([2, 0]), np.array([5.0, 6.0])), shape=(2, 3))
    with thalia.open(source) as file:
        with thalia.Writer(copy) as writer:
            for name, tensor in file["r"].items():
                writer.add(name, tensor, region="r")
        with thalia.open(copy) as found:
            assert list(found["r"]) == list(file["r"]) == ["bf16", "csr", "i4", "ternary"]
            for name, tensor in file["r"].items():
                assert found[name].dtype == tensor.dtype
                np.testing.assert_array_equal(found[name].dense(), tensor.dense())


@pytest.fixture
def tensor(path):
    with thalia.Writer(path) as writer:
        writer.add("r/w", WEIGHT)
    return thalia.open(path)["w"]


def test_readers_of_dlpack_see_the_mapping(tensor):
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("numpy has no DLPack 1.0 before 2.1")
    found = np.from_dlpack(tensor)
    assert np.shares_memory(found, tensor.numpy()) and not found.flags.writeable
    own = np.from_dlpack(tensor, copy=True)
    assert own.flags.writeable and not np.shares_memory(own, found)
    own[:] = 0
    del tensor
    gc.collect()
    np.testing.assert_array_equal(found, WEIGHT)


def test_older_readers_get_a_copy(tensor):
    class Older(Exporter):
        def __dlpack__(self, **options):
            return self.array.__dlpack__()

    own = np.from_dlpack(Older(tensor))
    assert not np.shares_memory(own, tensor.numpy())
    np.testing.assert_array_equal(own, WEIGHT)


def test_what_cannot_be_handed_over_is_a_buffer_error(tensor, tmp_path):
    with pytest.raises(BufferError, match="expected the CPU"):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match=r"r/w: .*without a copy"):
        tensor.__dlpack__(copy=False)
    with thalia.Writer(tmp_path / "z.thalia", compression="zstd") as writer:
        writer.add("r/w", np.zeros((40, 50)))
        writer.add("r/i4", np.zeros(3, ml_dtypes.int4))
        writer.add("r/empty", np.zeros((0, 3), np.int16))
    with thalia.open(tmp_path / "z.thalia") as file:
        assert np.from_dlpack(file["w"]).shape == (40, 50)
        assert np.from_dlpack(file["empty"]).shape == (0, 3)
        for name, options in (("w", {"copy": False, "max_version": (1, 0)}), ("i4", {})):
            with pytest.raises(BufferError):
                file[name].__dlpack__(**options)


def test_memory_of_arrays_is_asked_for_in_two_places_alone():
    # Each of these resolves what torch has marked as the negative, or the conjugate, of its memory.
    asks = re.compile(r"(?<!\))\.__dlpack__\(|bytes_at\(|[.\w]from_dlpack\(|__(?:cuda_)?array_interface__")
    package = Path(thalia.__file__).parent
    found = {str(path.relative_to(package)) for path in package.rglob("*.py") if asks.search(path.read_text("utf-8"))}
    # serialize.py is given addresses, and no arrays.
    assert found == {"_files/dlpack.py", "torch/_tensors.py", "_files/serialize.py"}
