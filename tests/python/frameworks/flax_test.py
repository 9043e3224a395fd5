"""thalia_checkpoint.flax in the place of safetensors.flax: the same calls, the same bytes and arrays."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

import thalia_checkpoint as thalia  # noqa: E402
import thalia_checkpoint.flax as ours  # noqa: E402
import thalia_checkpoint.numpy  # noqa: E402


def _tensors():
    return {
        "dense.kernel": jnp.arange(12, dtype=jnp.float32).reshape(3, 4),
        "dense.bias": jnp.ones(4, jnp.bfloat16),
        "transposed": jnp.arange(6, dtype=jnp.int32).reshape(2, 3).T,
        "flag": jnp.array(True),
        "empty": jnp.zeros((0, 3), jnp.float16),
        "f8": jnp.arange(4).astype(jnp.float8_e4m3fn),
    }


def _check(found, expected=None):
    expected = expected or _tensors()
    assert set(found) == set(expected)
    for name, array in found.items():
        assert isinstance(array, jax.Array), name
        assert (array.dtype, array.shape) == (expected[name].dtype, expected[name].shape)
        assert np.array_equal(np.asarray(array), np.asarray(expected[name])), name


@pytest.mark.parametrize("ending", ["safetensors", "thalia"])
@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_a_file_gives_the_arrays_back(tmp_path, ending, backend):
    path = tmp_path / f"model.{ending}"
    tensors = _tensors()
    ours.save_file(tensors, path, {"a": "1"})
    assert all(isinstance(array, jax.Array) for array in tensors.values()), "what was given is left as it was"
    _check(ours.load_file(path, backend=backend))
    with thalia.safe_open(path, "flax") as file:
        assert file.metadata() == {"a": "1"}


@pytest.mark.parametrize("format", ["safetensors", "thalia"])
def test_bytes_give_the_arrays_back(format):
    _check(ours.load(ours.save(_tensors(), format=format)))


def test_both_read_what_the_other_wrote(tmp_path):
    theirs = pytest.importorskip("safetensors.flax")
    # Some of its calls lack the types that numpy does.
    tensors = {name: array for name, array in _tensors().items() if name not in ("dense.bias", "f8")}
    data = ours.save(tensors, {"a": "1"})
    assert data == theirs.save(dict(tensors), metadata={"a": "1"})
    _check(theirs.load(data), tensors)
    theirs.save_file(dict(tensors), tmp_path / "theirs.safetensors")
    _check(ours.load_file(tmp_path / "theirs.safetensors"), tensors)
    ours.save_file(tensors, tmp_path / "ours.safetensors")
    _check(theirs.load_file(tmp_path / "ours.safetensors"), tensors)


def test_numbers_that_jax_would_change_are_an_error(tmp_path):
    thalia.numpy.save_file({"step": np.array([1 << 40])}, tmp_path / "model.thalia")
    with pytest.raises(thalia.errors.UnsupportedError, match="step: jax would round int64 to int32"):
        ours.load_file(tmp_path / "model.thalia")
    with pytest.raises(thalia.errors.UnsupportedError, match="step"):
        ours.load((tmp_path / "model.thalia").read_bytes())


def test_another_backend_is_an_error(tmp_path):
    ours.save_file(_tensors(), tmp_path / "model.thalia")
    with pytest.raises(thalia.errors.UsageError, match="expected mmap or pread"):
        ours.load_file(tmp_path / "model.thalia", backend="tape")
