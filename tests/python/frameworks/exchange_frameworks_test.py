"""DLPack with the frameworks themselves: types that numpy lacks, and memory that is shared."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import thalia_checkpoint as thalia
import torch
from thalia_checkpoint._files.elements import elements


class Exporter:
    """An array of which nothing is known but DLPack."""

    def __init__(self, array):
        self.__dlpack__ = array.__dlpack__
        self.__dlpack_device__ = array.__dlpack_device__
        self.array = array


TORCH = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.uint8, torch.uint16,
    torch.bool, torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
]  # fmt: skip


@pytest.mark.parametrize("alone", [True, False])
def test_tensors_of_torch(tmp_path, alone):
    torch.manual_seed(1)
    tensors = {str(dtype): (torch.rand(3, 5) * 9).to(dtype) for dtype in TORCH}
    tensors["transposed"] = tensors["torch.bfloat16"].T
    tensors["scalar"] = torch.tensor(2.5)
    with thalia.Writer(tmp_path / "f.thalia", durability="none") as writer:
        for name, tensor in tensors.items():
            writer.add(name, Exporter(tensor) if alone else tensor, region="r")
    with thalia.open(tmp_path / "f.thalia") as file:
        for name, tensor in tensors.items():
            found = file["r"][name].torch()
            assert found.dtype == tensor.dtype and found.shape == tensor.shape
            assert torch.equal(found.view(-1).view(torch.uint8), tensor.contiguous().view(-1).view(torch.uint8))
    bf16 = tensors["torch.bfloat16"]
    assert elements("w", bf16).data.ctypes.data == bf16.data_ptr()


def test_arrays_of_jax(tmp_path):
    arrays = {str(dtype): jnp.arange(6).astype(dtype).reshape(2, 3) for dtype in ("f4", "i4", "u1", "bool", "bfloat16")}
    with thalia.Writer(tmp_path / "f.thalia", durability="none") as writer:
        for name, array in arrays.items():
            writer.add(name, Exporter(array), region="r")
        writer.add("r/f8", arrays["f4"].astype(jnp.float8_e4m3fn))
    with thalia.open(tmp_path / "f.thalia") as file:
        assert file["f8"].dtype == "f8_e4m3"
        for name, array in arrays.items():
            found = file["r"][name].numpy()
            assert found.dtype == array.dtype and found.tobytes() == np.asarray(array).tobytes()
            again = jnp.from_dlpack(file["r"][name])
            assert isinstance(again, jax.Array) and again.dtype == array.dtype and bool((again == array).all())
    array = arrays["bfloat16"]
    assert elements("w", Exporter(array)).data.ctypes.data == array.unsafe_buffer_pointer()


def test_what_torch_cannot_hand_over_is_told(tmp_path):
    weight = torch.nn.Linear(2, 2).weight
    cases = [(weight, r"r/w: .*detach\(\)"), (torch.empty(3, device="meta"), "r/w: a torch.Tensor")]
    with thalia.Writer(tmp_path / "f.thalia") as writer:
        for tensor, words in cases:
            with pytest.raises(thalia.UnsupportedError, match=words):
                writer.add("r/w", tensor)
        writer.add("r/w", weight.detach())


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_torch_reads_tensors_of_files(tmp_path, compression):
    torch.manual_seed(2)
    tensors = {str(dtype): (torch.rand(3000, 5) * 9).to(dtype) for dtype in TORCH}
    with thalia.Writer(tmp_path / "f.thalia", compression=compression, durability="none") as writer:
        for name, tensor in tensors.items():
            writer.add(name, tensor, region="r")
    file = thalia.open(tmp_path / "f.thalia")
    for name, tensor in tensors.items():
        source = file["r"][name]
        found = torch.from_dlpack(source)
        in_place = found.data_ptr() == np.frombuffer(source.raw(), np.uint8).ctypes.data
        assert in_place == source.is_mapped == (compression is None)
        own = torch.from_dlpack(source, copy=True)
        assert own.data_ptr() != found.data_ptr()
        for each in (found, own):
            assert each.dtype == tensor.dtype
            assert torch.equal(each.view(-1).view(torch.uint8), tensor.view(-1).view(torch.uint8))
        own.zero_()
    file.close()
    del file, source
    assert found.numel() == 15000 and found.view(torch.uint8).sum() >= 0
