"""thalia_checkpoint.save() and load() beside those of torch and thalia_checkpoint.torch."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from states import same_state as same


def state():
    flat = torch.arange(20.0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "head": flat[:6].view(2, 3).T,
        "tail": flat[4:],
        "bytes": flat[:4].view(torch.uint8)[3:9],
        "half": torch.ones(2, dtype=torch.bfloat16),
        "array": np.arange(3),
        "step": 7,
        "size": torch.Size([1, 2]),
        "dtype": torch.float16,
        "device": torch.device("cpu"),
        "p": torch.nn.Parameter(flat[2:3]),
    }


def plain(value):
    """With arrays for tensors."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return (
            value.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if value.dtype == torch.bfloat16 else value.numpy()
        )
    if isinstance(value, dict):
        return type(value)((key, plain(inner)) for key, inner in value.items())
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype | torch.device) else value


def equal(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("mmap", [False, True])
def test_tensors_come_as_arrays(mmap, tmp_path):
    first = state()
    thalia_torch.save(first, tmp_path / "s.thalia")
    back = thalia.load(tmp_path / "s.thalia", mmap=mmap)
    assert equal(plain(first), back)
    if not mmap:
        back["head"][1, 1] = 99
        assert back["tail"][0] == 99
    torch.save({"a": first["model"], "n": [1, (2,)]}, tmp_path / "s.pt")
    assert equal(plain({"a": first["model"], "n": [1, (2,)]}), thalia.load(tmp_path / "s.pt", mmap=mmap))


def test_tensors_are_saved_where_torch_is_imported(tmp_path):
    first = state()
    thalia.save(first, tmp_path / "s.thalia", metadata={"a": 1})
    assert same(thalia_torch.load(tmp_path / "s.thalia"), first)
    assert thalia.open(tmp_path / "s.thalia").metadata["a"] == 1
    assert same(thalia_torch.load(thalia.save(first["model"])), first["model"])


def test_arrays_of_jax_are_saved_as_arrays():
    back = thalia.load(thalia.save({"a": jnp.arange(3), "b": jnp.ones(2, jnp.bfloat16)}))
    assert back["a"].tolist() == [0, 1, 2] and back["b"].dtype == ml_dtypes.bfloat16
    assert thalia_torch.load(thalia.save(jnp.arange(2))).tolist() == [0, 1]


def test_a_view_of_what_numpy_lacks_is_refused(tmp_path):
    flat = torch.zeros(8, dtype=torch.complex64)
    with thalia.Writer(tmp_path / "s.thalia") as writer:
        writer.add("w", flat.numpy(), region="r")
        view = {"dtype": "complex32", "offset": 0, "shape": [2], "stride": [1]}
        writer.metadata = {"thalia_checkpoint": {"version": 1, "tree": {"tensor": "w", "view": view}}}
    with pytest.raises(thalia.UnsupportedError, match="complex32"):
        thalia.load(tmp_path / "s.thalia")
