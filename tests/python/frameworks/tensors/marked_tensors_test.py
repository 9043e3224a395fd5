"""Tensors of torch that are marked as the negative, or the conjugate, of what lies in memory: every entry
that takes an array writes what they are."""

import asyncio

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.numpy as thalia_numpy
import thalia_checkpoint.torch as thalia_torch
import torch
import torch.distributed.checkpoint as dcp
from thalia_checkpoint import CooArrays, CsrArrays
from thalia_checkpoint._files.elements import elements
from thalia_checkpoint.brain import BrainCheckpoint
from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter
from thalia_checkpoint.mithril import Compressor
from thalia_checkpoint.torch import AsyncCheckpointer


def marked():
    """Tensors by what they are marked as."""
    pairs = torch.tensor([[1 + 2j, 3 - 4j], [-5 + 6j, 7 + 0j]])
    found = {
        "negative": pairs.conj().imag,
        "conjugate": pairs.conj(),
        "turned": pairs.conj().T,
        "both": torch._neg_view(pairs.conj()),
        "negative_row": pairs.conj().imag[1],
        "negative_half": torch._neg_view(torch.tensor([1.5, -2.0], dtype=torch.bfloat16)),
        "negative_int": torch._neg_view(torch.tensor([1, -2])),
    }
    assert all(tensor.is_neg() or tensor.is_conj() for tensor in found.values())
    return found


def written(path):
    """What a file has as the tensor x."""
    with thalia.open(path) as file:
        return file.tensors["x"].torch()


def by_writer(tmp_path, tensor):
    with thalia.Writer(tmp_path / "f.thalia") as writer:
        writer.add("x", tensor)
    return written(tmp_path / "f.thalia")


def by_saver(tmp_path, tensor):
    writer = thalia.Writer(tmp_path / "f.thalia")
    writer.add("x", tensor)
    thalia.AsyncSaver().save(writer).wait()
    return written(tmp_path / "f.thalia")


def by_borrowing_saver(tmp_path, tensor):
    async def save():
        writer = thalia.Writer(tmp_path / "f.thalia")
        writer.add("x", tensor)
        await thalia.AsyncSaver().save(writer, snapshot="borrowed")

    asyncio.run(save())
    return written(tmp_path / "f.thalia")


def by_connection(tmp_path, tensor):
    with thalia.Writer(tmp_path / "f.thalia") as writer:
        writer.region("a")
        writer.region("b")
        writer.connect("a", "b", tensor, tensor)
    (connection,) = thalia.open(tmp_path / "f.thalia").connections
    assert torch.equal(connection.weights.torch(), connection.delays.torch())
    return connection.weights.torch()


def by_sparse(tmp_path, tensor):
    n = tensor.numel()
    values = tensor.reshape(-1)
    csr = CsrArrays(np.array([0, n], np.uint32), np.arange(n, dtype=np.uint32), values)
    coo = CooArrays(np.stack([np.zeros(n, np.uint32), np.arange(n, dtype=np.uint32)]), values)
    with thalia.Writer(tmp_path / "f.thalia") as writer:
        writer.add("csr", csr, shape=(1, n))
        writer.add("coo", coo, shape=(1, n))
    with thalia.open(tmp_path / "f.thalia") as file:
        found = [file.tensors[name].torch() for name in ("csr", "coo")]
    assert torch.equal(*found)
    return found[0].reshape(tensor.shape)


def by_numpy(tmp_path, tensor):
    for name in ("f.thalia", "f.safetensors"):
        thalia_numpy.save_file({"x": tensor}, tmp_path / name)
    whole = thalia_torch.load(thalia_numpy.save({"x": tensor}))
    found = [written(tmp_path / name) for name in ("f.thalia", "f.safetensors")]
    assert torch.equal(*found) and torch.equal(found[0], whole["x"])
    return found[0]


def by_torch(tmp_path, tensor):
    # Not by strides: what is stored is contiguous.
    dense = tensor if tensor.is_contiguous() else tensor.contiguous()
    for name in ("f.thalia", "f.safetensors"):
        thalia_torch.save_file({"x": dense}, tmp_path / name)
    thalia_torch.save({"x": tensor, "again": tensor, "parameter": [tensor]}, tmp_path / "s.thalia")
    state = thalia_torch.load(tmp_path / "s.thalia")
    found = [thalia_torch.load_file(tmp_path / name)["x"] for name in ("f.thalia", "f.safetensors")]
    found += [thalia_torch.load(thalia_torch.save({"x": dense}))["x"], state["x"], state["again"]]
    assert all(torch.equal(each, state["parameter"][0]) for each in found)
    return found[0]


def by_checkpointer(tmp_path, tensor):
    with AsyncCheckpointer(torch.nn.Linear(1, 1), folder=tmp_path, every=1) as checkpoints:
        checkpoints.step(1, x=tensor)
    path = tmp_path / "train/checkpoints/ckpt_train_step00000001.thalia"
    with thalia.open(path) as file:
        return next(tensor for name, tensor in file.tensors.items() if name.endswith("x")).torch()


def by_brain(tmp_path, tensor):
    state = {"regions": {"cortex": {"weights": {"w": tensor}}}}
    BrainCheckpoint.save(state, tmp_path / "b.thalia")
    return BrainCheckpoint.load(tmp_path / "b.thalia")["regions"]["cortex"]["weights"]["w"]


def by_compressor(tmp_path, tensor):
    compressor = Compressor(storage=str(tmp_path))
    compressor.save({"x": tensor}, key="a")
    return compressor.load("a")["x"]


def by_dcp(tmp_path, tensor):
    dcp.save({"x": tensor}, storage_writer=ThaliaStorageWriter(tmp_path / "c"), no_dist=True)
    state = {"x": torch.zeros_like(tensor).resolve_neg().resolve_conj()}
    dcp.load(state, storage_reader=ThaliaStorageReader(tmp_path / "c"), no_dist=True)
    return state["x"]


@pytest.mark.filterwarnings("ignore:torch.distributed is")
@pytest.mark.parametrize("kind", marked())
@pytest.mark.parametrize(
    "entry",
    [
        by_writer, by_saver, by_borrowing_saver, by_connection, by_sparse, by_numpy, by_torch, by_checkpointer,
        by_brain, by_compressor, by_dcp,
    ],
)  # fmt: skip
def test_what_they_are_is_written(tmp_path, entry, kind):
    tensor = marked()[kind]
    expected = tensor.resolve_conj().resolve_neg()
    found = entry(tmp_path, tensor)
    assert found.dtype == expected.dtype and torch.equal(found, expected)


@pytest.mark.parametrize("kind", marked())
def test_one_that_needs_a_gradient_is_refused_as_any_other(kind):
    tensor = marked()[kind]
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        with pytest.raises(thalia.UnsupportedError, match="detach"):
            elements("x", tensor.detach().requires_grad_())


def test_plain_memory_is_still_borrowed():
    tensor = torch.rand(3, 4)
    assert elements("w", tensor).data.ctypes.data == tensor.data_ptr()
