"""The same calls as the reference library's, with the same results, in both formats."""

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy as theirs
import thalia_checkpoint as thalia
import thalia_checkpoint.numpy as ours


@pytest.fixture
def arrays():
    rng = np.random.default_rng(5)
    return {
        "model.layers.0.weight": rng.normal(size=(4, 3)).astype(np.float32),
        "model.layers.0.bias": rng.normal(size=3).astype(ml_dtypes.bfloat16),
        "model.layers.1.weight": rng.normal(size=(4, 3)).astype(np.float16),
        "steps": np.array(7, np.int64),
        "mask": np.array([True, False]),
        "empty": np.zeros((0, 3), np.float32),
    }


def check(found, arrays):
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("ending", ["safetensors", "thalia"])
def test_files_of_ours_and_theirs(tmp_path, arrays, ending):
    path = tmp_path / f"f.{ending}"
    ours.save_file(arrays, path, metadata={"format": "pt", "step": "7"})
    check(ours.load_file(path), arrays)
    check(ours.load_file(path, mmap=True), arrays)
    assert ours.load_file(path)["steps"].flags.writeable
    assert not ours.load_file(path, mmap=True)["mask"].flags.writeable
    with thalia.safe_open(path, "np") as file:
        assert file.metadata() == {"format": "pt", "step": "7"}
        assert file.keys() == sorted(arrays)
    if ending == "safetensors":
        check(theirs.load_file(path), arrays)
        theirs.save_file(arrays, tmp_path / "t.safetensors", metadata={"format": "pt", "step": "7"})
        check(ours.load_file(tmp_path / "t.safetensors"), arrays)


def test_bytes_are_those_of_the_reference(arrays):
    del arrays["empty"]
    assert ours.save(arrays, {"a": "b"}) == theirs.save(arrays, {"a": "b"})
    check(ours.load(theirs.save(arrays)), arrays)
    check(ours.load(ours.save(arrays, format="thalia")), arrays)
    del arrays["model.layers.0.bias"]  # the reference's load() knows no bf16
    check(theirs.load(ours.save(arrays)), arrays)


def specs(module, arrays):
    return {
        name: module.TensorSpec(dtype=a.dtype.name, shape=a.shape, data_ptr=a.ctypes.data, data_len=a.nbytes)
        for name, a in arrays.items()
    }


def test_serialize_is_the_references(tmp_path, arrays):
    del arrays["empty"]  # of which numpy has an address and the reference none
    for metadata in (None, {}, {"a": "b"}):
        expected = safetensors.serialize(specs(safetensors, arrays), metadata=metadata)
        assert thalia.serialize(specs(thalia, arrays), metadata=metadata) == expected
        thalia.serialize_file(specs(thalia, arrays), tmp_path / "a.safetensors", metadata=metadata)
        assert (tmp_path / "a.safetensors").read_bytes() == expected
        assert dict(thalia.deserialize(expected)) == dict(safetensors.deserialize(expected))


def test_a_tensor_spec_is_the_references():
    data = np.zeros(64, np.uint8)
    names = [
        "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
        "float64", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
        "float8_e8m0fnu", "float4_e2m1fn_x2", "complex64",
    ]  # fmt: skip
    for name in names:
        given = {"dtype": name, "shape": [2, 3], "data_ptr": data.ctypes.data, "data_len": 6}
        our, their = thalia.TensorSpec(**given), safetensors.TensorSpec(**given)
        for member in ("dtype", "shape", "data_ptr", "data_len"):
            assert getattr(our, member) == getattr(their, member), name
        assert repr(our) == repr(their)
    for name in ("complex128", "int4", "F32", "object", ""):
        for module in (thalia, safetensors):
            with pytest.raises(module.SafetensorError, match=r"float32, .*float64|float64, .*float32"):
                module.TensorSpec(dtype=name, shape=[1], data_ptr=0, data_len=4)
    with pytest.raises(TypeError):
        thalia.TensorSpec("float32", [1], 0, 4)
    with pytest.raises(thalia.UsageError, match="shape"):
        thalia.TensorSpec(dtype="float32", shape=[-1], data_ptr=0, data_len=4)
    short = thalia.TensorSpec(dtype="float32", shape=[3], data_ptr=data.ctypes.data, data_len=8)
    with pytest.raises(thalia.SafetensorError):
        thalia.serialize({"a": short})
    with pytest.raises(TypeError, match="a: got dict, expected a TensorSpec"):
        thalia.serialize({"a": {"dtype": "float32"}})


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_all_tensors_at_once_by_either_backend(tmp_path, arrays, backend):
    path = tmp_path / "a.safetensors"
    ours.save_file(arrays, path)
    with thalia.safe_open(path, "np", backend=backend) as file, safetensors.safe_open(path, "np") as their:
        check(file.get_tensors(), arrays)
        assert list(file.get_tensors()) == list(their.get_tensors()) == file.offset_keys()
    for module in (thalia, safetensors):
        with pytest.raises(module.SafetensorError, match=r"backend .*other.*mmap"):
            module.safe_open(path, "np", backend="other")


def test_what_is_no_slice_is_an_error_of_numpys_kind(tmp_path, arrays):
    path = tmp_path / "a.safetensors"
    ours.save_file(arrays, path)
    with thalia.safe_open(path, "np") as file, safetensors.safe_open(path, "np") as their:
        for index in ("a", 1.5, {}, 9, -9, (0, 0, 0)):
            with pytest.raises((IndexError, TypeError)):
                file.get_slice("model.layers.0.weight")[index]
            with pytest.raises((IndexError, TypeError, safetensors.SafetensorError)):
                their.get_slice("model.layers.0.weight")[index]
        with pytest.raises(thalia.SafetensorError, match="is no slice"):
            file.get_slice("model.layers.0.weight")["a"]


@pytest.mark.parametrize("ending", ["safetensors", "thalia"])
def test_safe_open_is_the_references(tmp_path, arrays, ending):
    path, reference = tmp_path / f"f.{ending}", tmp_path / "reference.safetensors"
    ours.save_file(arrays, path)
    theirs.save_file(arrays, reference)
    with thalia.safe_open(path, framework="np") as a, safetensors.safe_open(reference, "np") as b:
        assert a.keys() == sorted(b.keys())
        assert set(a.offset_keys()) == set(b.offset_keys())
        assert a.metadata() == b.metadata()
        for name in b.keys():
            if arrays[name].dtype == ml_dtypes.bfloat16:
                continue
            np.testing.assert_array_equal(a.get_tensor(name), b.get_tensor(name))
        ours_part, theirs_part = (f.get_slice("model.layers.0.weight") for f in (a, b))
        assert ours_part.get_shape() == theirs_part.get_shape() == [4, 3]
        assert ours_part.get_dtype() == theirs_part.get_dtype() == "F32"
        for index in (slice(1, 3), (slice(None), slice(0, 2)), (2, slice(None)), ...):
            np.testing.assert_array_equal(ours_part[index], theirs_part[index])
        for file, error in ((a, thalia.SafetensorError), (b, safetensors.SafetensorError)):
            with pytest.raises(error, match="File does not contain tensor nope"):
                file.get_tensor("nope")


def test_sparse_tensors_come_with_their_zeros(tmp_path):
    dense = np.zeros((3, 4), np.float32)
    dense[[0, 2], [1, 3]] = [5, 6]
    csr = thalia.CsrArrays(np.array([0, 1, 1, 2]), np.array([1, 3], np.uint32), dense[[0, 2], [1, 3]])
    with thalia.Writer(tmp_path / "f.thalia", durability="none") as writer:
        writer.add("r/w", csr, shape=dense.shape)
    np.testing.assert_array_equal(ours.load_file(tmp_path / "f.thalia")["w"], dense)
    np.testing.assert_array_equal(ours.load((tmp_path / "f.thalia").read_bytes())["w"], dense)
    for ending in ("npz", "gguf", "safetensors", "thalia.zst"):
        path = tmp_path / f"other.{ending}"
        if ending == "thalia.zst":
            thalia.compress(tmp_path / "f.thalia", path)
        else:
            ours.save_file({"w": dense}, tmp_path / "dense.thalia")
            thalia.convert(tmp_path / "dense.thalia", path, replace=True)
        np.testing.assert_array_equal(ours.load(path.read_bytes())["w"], dense)
    with thalia.safe_open(tmp_path / "f.thalia", "np") as file:
        np.testing.assert_array_equal(file.get_tensor("w"), dense)


def test_errors_are_caught_as_the_references(tmp_path):
    missing, broken = tmp_path / "missing.safetensors", tmp_path / "broken.safetensors"
    broken.write_bytes(b"\x00" * 7)
    for module, error in ((thalia, thalia.SafetensorError), (safetensors, safetensors.SafetensorError)):
        with pytest.raises(FileNotFoundError):
            module.safe_open(missing, "np")
        with pytest.raises(error):
            module.safe_open(broken, "np")
        with pytest.raises(error):
            module.safe_open(broken, "no such framework")


def test_a_safetensors_file_opens_as_any_other(tmp_path, arrays):
    path = tmp_path / "f.safetensors"
    theirs.save_file(arrays, path, metadata={"a": "b"})
    with thalia.open(path) as file:
        assert set(file) == set(arrays) and file.metadata["safetensors"] == {"metadata": {"a": "b"}}
        weight = file["model.layers.0.weight"]
        np.testing.assert_array_equal(weight[1:3, ::2], arrays["model.layers.0.weight"][1:3, ::2])
        assert weight.is_mapped and np.shares_memory(weight.numpy(), weight[2:])
        with pytest.raises(KeyError):
            file["nope"]
