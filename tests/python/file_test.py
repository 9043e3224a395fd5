"""Files as mappings, tensors as arrays of the mapping."""

import gc
import os
import signal
import threading

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.numpy import load_file, save_file


def test_an_integer_longer_than_python_reads_is_the_files_fault(path):
    with thalia.Writer(path, durability="none") as writer:
        writer.add("r/w", np.ones(1))
        writer.metadata = '{"step": %s}' % ("9" * 5000)
    with thalia.open(path) as file:
        assert file["r/w"].shape == (1,)
        with pytest.raises(thalia.FormatError, match=r"file.thalia: .*4300 digits"):
            _ = file.metadata
    with pytest.raises(thalia.FormatError, match=r"file.thalia: .*4300 digits"):
        thalia.info(path)


@pytest.mark.parametrize("kind", ["thalia", "safetensors", "wrapped"])
def test_a_writable_file_is_written_to_in_memory_alone(tmp_path, kind):
    path = tmp_path / ("f.safetensors" if kind == "safetensors" else "f.thalia")
    save_file({"a": np.ones(5000), "b": np.ones(3)}, path)
    if kind == "wrapped":
        thalia.compress(path, path := tmp_path / "f.thalia.zst")
    before = path.read_bytes()
    with thalia.open(path, access="writable") as file:
        array = file["a"].numpy()
        array[:] = 2
        assert (file["a"].numpy() == 2).all() and (file["a"][4000:] == 2).all()
        assert (file["b"].numpy() == 1).all()
        if kind == "thalia":
            file[next(iter(file))].release()
            assert (array == 2).all()
    assert (array == 2).all() and path.read_bytes() == before
    with thalia.open(path) as file:
        assert (file["a"].numpy() == 1).all() and not file["a"].numpy().flags.writeable


@pytest.mark.parametrize("checksum", ["block_tree", "sha256", "crc32"])
def test_damage_of_a_mapped_file_is_told_by_its_tensor(path, checksum):
    arrays = {name: np.full(3_000_000, i, np.uint8) for i, name in enumerate("abc")}
    save_file(arrays, path, checksum=checksum)
    assert all((array == arrays[name]).all() for name, array in load_file(path, mmap=True).items())
    with thalia.open(path) as file:
        offset = file["b"]._source.offset + 1_500_000
    with open(path, "r+b") as raw:
        raw.seek(offset)
        raw.write(b"x")
    with pytest.raises(thalia.IntegrityError) as error:
        load_file(path, mmap=True)
    assert error.value.tensor == "b"


def test_ctrl_c_ends_verifying_and_the_file_is_of_use(path):
    save_file({"w": np.ones(60 << 20)}, path, durability="none")
    with thalia.open(path) as file:
        timer = threading.Timer(0.01, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                file.verify_all()
        file.verify_all()
        assert file["w"][5] == 1


def test_regions_and_tensors_are_mappings(sample):
    path, arrays = sample
    with thalia.open(path) as file:
        assert list(file) == ["encoder", "decoder"] and len(file) == 2
        assert list(file["decoder"]) == ["mask", "weight"]
        assert "encoder" in file and "encoder/bias" in file and "bias" in file
        assert "weight" not in file["decoder"] or file["decoder"]["weight"].shape == (2, 3, 4)
        assert "nope" not in file and 3 not in file
        assert file.metadata == {"step": 12, "nested": {"lr": 0.5}}
        assert file.header["training_steps"] == 12
        assert set(file.tensors) == {
            "encoder.weight", "bias", "scalar", "empty", "decoder.weight", "mask"
        }  # fmt: skip
        for name, array in arrays.items():
            tensor = file[name]
            assert tensor.path == name and tensor.shape == array.shape
            assert tensor.nbytes == array.nbytes and tensor.size == array.size
            np.testing.assert_array_equal(tensor.numpy(), array)
            assert tensor.numpy().dtype == array.dtype


def test_arrays_lie_in_the_mapping_and_outlive_the_file(sample):
    path, arrays = sample
    file = thalia.open(path)
    tensor = file["encoder"]["weight"]
    first, second = tensor.numpy(), tensor.numpy()
    assert np.shares_memory(first, second) and not first.flags.writeable
    assert np.shares_memory(first, tensor[2:4]) and np.shares_memory(first, np.asarray(tensor))
    with pytest.raises(ValueError):
        first[0, 0] = 1
    own = tensor.numpy(writable=True)
    assert not np.shares_memory(first, own)
    own[0, 0] = 1
    file.close()
    del file, tensor, second
    gc.collect()
    os.unlink(path)
    np.testing.assert_array_equal(first, arrays["encoder/weight"])


def test_many_look_ups_find_what_one_does(path):
    with thalia.Writer(path, durability="none") as writer:
        for i in range(100):
            writer.add(f"r{i}/own{i}", np.full(2, i))
            writer.add(f"r{i}/shared", np.full(3, i))
        writer.add("a/r1.shared", np.full(4, -1))  # looks like a flat name
    with thalia.open(path) as file:
        assert len(file.tensors) == 201
        assert (file.tensors["r1/shared"].numpy() == 1).all()
        assert (file.tensors["r2.shared"].numpy() == 2).all()
        for i in range(100):
            assert (file[f"own{i}"].numpy() == i).all() and file[f"own{i}"].path == f"r{i}/own{i}"
            assert (file[f"r{i}/shared"].numpy() == i).all()
            assert (file["r1.shared"].numpy() == -1).all()
            with pytest.raises(thalia.UsageError, match="shared"):
                file["shared"]
            with pytest.raises(KeyError):
                file[f"r{i}.own{i}"]


def test_a_closed_file_says_so(sample):
    file = thalia.open(sample[0])
    tensor = file["bias"]
    file.close()
    with pytest.raises(thalia.UsageError, match="closed"):
        file["bias"]
    assert tensor.shape == (5,)


@pytest.mark.parametrize("options", [{}, {"access": "copied"}, {"verification": "at_open"}])
def test_however_it_is_read_the_values_are_the_same(sample, options):
    path, arrays = sample
    with thalia.open(path, **options) as file:
        for name, array in arrays.items():
            np.testing.assert_array_equal(file[name].numpy(), array)


def test_compressed_tensors_are_decoded(path):
    rng = np.random.default_rng(1)
    array = rng.normal(size=(300, 1000)).astype(np.float32)
    for codec in ("plane_entropy", "packed_exponents", "zstd", "lz4"):
        with thalia.Writer(path, compression=codec, durability="none") as writer:
            writer.add("r/w", array)
        tensor = thalia.open(path)["w"]
        assert codec in tensor.codecs and not tensor.is_mapped
        assert tensor.stored_bytes < tensor.nbytes or codec == "lz4"
        np.testing.assert_array_equal(tensor.numpy(), array)
        np.testing.assert_array_equal(tensor[17:40, 3:9], array[17:40, 3:9])


def test_a_slice_of_a_compressed_tensor_reads_only_its_chunks(path):
    array = np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)
    with thalia.Writer(path, compression="zstd", chunk_bytes=1 << 16, durability="none") as writer:
        writer.add("r/w", array)
    tensor = thalia.open(path, verification="off")["w"]
    # Damage in a chunk that the slice has nothing of.
    data = bytearray(path.read_bytes())
    data[tensor._source.offset + tensor.stored_bytes - 9] ^= 0xFF
    path.write_bytes(data)
    tensor = thalia.open(path, verification="off")["w"]
    np.testing.assert_array_equal(tensor[:16], array[:16])
    with pytest.raises((thalia.IntegrityError, thalia.FormatError)):
        tensor[-1]


def test_only_what_a_slice_takes_is_verified_and_read(path):
    rows = np.arange(64 << 20, dtype=np.uint8).reshape(64, 1 << 20)
    with thalia.Writer(path, durability="none") as writer:
        writer.add("r/w", rows)
    with open(path, "r+b") as raw:
        raw.seek(thalia.open(path)["w"]._source.offset + (60 << 20))
        raw.write(b"damage")
    tensor = thalia.open(path)["w"]
    np.testing.assert_array_equal(tensor[3:7], rows[3:7])
    with pytest.raises(thalia.IntegrityError) as error:
        tensor[60]
    assert error.value.tensor == "w" and error.value.region == "r"
    assert error.value.code == "checksum_mismatch" and error.value.path == str(path)


def test_sparse_tensors_give_their_arrays(path):
    dense = np.zeros((40, 600), np.float32)
    dense[np.arange(2000) % 37, np.arange(2000) * 7 % 600] = 1
    rows, columns = np.nonzero(dense)
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=40))])
    with thalia.Writer(path, durability="none") as writer:
        csr = thalia.CsrArrays(pointers, columns.astype(np.uint32), dense[rows, columns])
        writer.add("r/csr", csr, shape=dense.shape)
        coo = thalia.CooArrays(np.array([rows, columns], np.uint64), dense[rows, columns])
        writer.add("r/coo", coo, shape=dense.shape)
    for compressed in (False, True):
        with thalia.open(path) as file:
            np.testing.assert_array_equal(file["csr"].csr().row_pointers, pointers)
            np.testing.assert_array_equal(file["csr"].csr().column_indices, columns)
            np.testing.assert_array_equal(file["coo"].coo().indices, [rows, columns])
            assert file["coo"].coo().indices.dtype == np.uint64
            for name in ("csr", "coo"):
                np.testing.assert_array_equal(file[name].dense(), dense)
                assert file[name].is_mapped != compressed
                with pytest.raises(thalia.UsageError, match="expected dense"):
                    file[name].numpy()
            with pytest.raises(thalia.UsageError, match="expected coo"):
                file["csr"].coo()
        with thalia.Writer(path, compression="zstd", durability="none") as writer:
            writer.add("r/csr", csr, shape=dense.shape)
            writer.add("r/coo", coo, shape=dense.shape)


def test_connections(path):
    weights = np.eye(3, dtype=np.float32)
    with thalia.Writer(path, durability="none") as writer:
        writer.region("a", n_neurons=3, config={"tau": 20})
        writer.region("b", n_neurons=3, metadata={"age": 1})
        writer.connect("a", "b", weights, np.full((3, 3), 2, np.uint8))
        writer.connect("b", "a", weights)
    with thalia.open(path) as file:
        assert file["a"].n_neurons == 3 and file["a"].config == {"tau": 20}
        assert file["b"].metadata == {"age": 1} and file["b"].config == {}
        there, back = file.connections
        assert (there.source, there.target) == ("a", "b") and back.delays is None
        np.testing.assert_array_equal(there.weights.numpy(), weights)
        np.testing.assert_array_equal(there.delays.numpy(), np.full((3, 3), 2))


def test_the_mapping_is_one_mapping_of_the_file(sample):
    path, _ = sample
    array = thalia.open(path)["encoder/weight"].numpy()
    address = array.__array_interface__["data"][0]
    with open("/proc/self/maps", encoding="ascii") as maps:
        spans = [line.split()[0].split("-") for line in maps if str(path) in line]
    assert any(int(begin, 16) <= address < int(end, 16) for begin, end in spans)
    assert address % 64 == 0


def test_views_survive_many_files(tmp_path):
    arrays = []
    for i in range(200):
        name = tmp_path / f"{i}.thalia"
        with thalia.Writer(name, durability="none") as writer:
            writer.add("r/w", np.full(10, i))
        arrays.append(thalia.open(name)["w"].numpy())
    for i, array in enumerate(arrays):
        assert (array == i).all()


@pytest.mark.parametrize(("dtype", "size"), [("f32", 60), ("u8", 15), ("binary", 2), ("ternary", 4)])
def test_an_array_is_made_of_exactly_the_bytes_of_all_elements(path, dtype, size):
    with thalia.Writer(path) as writer:
        writer.add_bytes("r/w", dtype, (3, 5), bytes(size))
    with thalia.open(path) as file:
        tensor = file["r/w"]
        data = bytes(tensor.raw())
        assert len(data) == size
        np.testing.assert_array_equal(tensor.array_of(data), tensor.numpy())
        for wrong in data[:-1], data + b"\0", b"":
            with pytest.raises(ValueError):
                tensor.array_of(wrong)
