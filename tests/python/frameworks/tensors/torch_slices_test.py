"""Parts of tensors that torch gets: the elements, the shape and the dtype of numpy's own indexing."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import safetensors
import thalia_checkpoint as thalia
import torch
from safetensors.torch import save_file
from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter
from thalia_checkpoint.torch import save
from torch.distributed import checkpoint as dcp

WHOLE = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64]
WHOLE += [torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.complex64]
WHOLE += [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
S = slice
INDICES = [
    0, -1, (0, 0), (0, 0, 0), (-1, -1, -1), (..., 0), (..., 0, 0, 0), (0, ..., 0), (), ..., (...,), None, (None, 0),
    (0, None, 0), (None, 0, 0, 0), S(None), S(0, 2), S(-2, None), S(0, 3, 2), (S(None), S(1, 3), S(2, None)),
    (S(None), 0), (0, S(1, 2)), (..., S(0, 2)), S(0, 10**30),
    S(0, 0), S(2, 2), S(5, 9), S(2, 0), (S(None), S(0, 0)), (..., S(0, 0)), (S(0, 0), 0), (0, S(2, 2), 0),
    (None, S(5, 9)), (S(1, 2), S(1, 1), S(0, 0)),
]  # fmt: skip
#: safetensors has none of these.
BACKWARDS = [
    S(None, None, -1),
    S(3, 1, -1),
    (S(2, 1, -1), S(None), S(1, 0, -1)),
    (0, S(None, None, -2), 0),
    S(0, 2, -1),
]


def codes_of(dtype):
    """A tensor of shape [3, 4, 5], and the bits of its elements as an array of that shape."""
    width = dtype.itemsize
    codes = np.arange(60 * width, dtype=np.uint8)
    if dtype == torch.bool:
        codes &= 1
    tensor = torch.from_numpy(codes.copy()).view(dtype).reshape(3, 4, 5)
    return tensor, codes.view(f"V{width}").reshape(3, 4, 5)


def bits(tensor):
    # One element is contiguous with any stride, which a view as bytes does not take.
    flat = tensor.reshape(-1).as_strided((tensor.numel(),), (1,))
    return flat.view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
@pytest.mark.parametrize("ending", ["safetensors", "thalia", "zst"])
def test_a_slice_is_what_numpy_takes(tmp_path, dtype, ending):
    tensor, codes = codes_of(dtype)
    path, reference = tmp_path / f"f.{ending}", tmp_path / "reference.safetensors"
    save_file({"a": tensor}, reference)
    if ending == "safetensors":
        path = reference
    else:
        save({"a": tensor}, path, compression="zstd" if ending == "zst" else None)
    with thalia.safe_open(path, "pt") as file, safetensors.safe_open(reference, "pt") as theirs:
        for index in INDICES + BACKWARDS:
            found, expected = file.get_slice("a")[index], np.asarray(codes[index])
            assert (found.dtype, tuple(found.shape)) == (dtype, expected.shape), index
            assert found.is_contiguous() and bits(found) == expected.tobytes(), index
            if index in INDICES:
                their = theirs.get_slice("a")[index].contiguous()
                assert (their.dtype, their.shape) == (found.dtype, found.shape) and bits(their) == bits(found), index


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.int64], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (3, 0, 2)])
def test_of_a_scalar_and_of_no_elements(tmp_path, dtype, shape):
    for path in (tmp_path / "f.safetensors", tmp_path / "f.thalia"):
        tensor = torch.ones(shape).to(dtype)
        save_file({"a": tensor}, path) if path.suffix == ".safetensors" else save({"a": tensor}, path)
        with thalia.safe_open(path, "pt") as file:
            for index in [(), ..., None, (None, ...)] + (
                [S(0, 0), S(None), S(1, 2), S(None, None, -1)] if shape else []
            ):
                found, expected = file.get_slice("a")[index], np.ones(shape)[index]
                assert (found.dtype, tuple(found.shape)) == (dtype, expected.shape), index
                assert found.to(torch.float32).numpy().tolist() == expected.tolist(), index


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_packed_elements_come_a_byte_each(tmp_path, name):
    codes = (np.arange(60) % 3 - (name[0] == "i")).reshape(3, 4, 5)
    with thalia.Writer(tmp_path / "f.thalia") as writer:
        writer.add("a", codes.astype(getattr(ml_dtypes, name)))
    with thalia.safe_open(tmp_path / "f.thalia", "pt") as file:
        for index in INDICES + BACKWARDS:
            found, expected = file.get_slice("a")[index], codes[index]
            assert found.dtype == (torch.int8 if name[0] == "i" else torch.uint8)
            assert tuple(found.shape) == expected.shape and found.numpy().tolist() == expected.tolist(), index


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this torch has no pairs of f4_e2m1")
def test_pairs_of_four_bits_at_any_index_but_of_the_last_dimension(tmp_path):
    codes = torch.arange(60, dtype=torch.uint8).reshape(3, 4, 5)
    save({"a": codes.view(torch.float4_e2m1fn_x2)}, tmp_path / "f.thalia")
    with thalia.safe_open(tmp_path / "f.thalia", "pt") as file:
        tried = 0
        for index in INDICES + BACKWARDS:
            rest = [item for item in (index if isinstance(index, tuple) else (index,)) if item is not None]
            if len(rest) < 3 and not (... in rest and rest != [...]):
                found, expected = file.get_slice("a")[index], codes.numpy()[index]
                assert np.array_equal(found.view(torch.uint8).numpy(), expected), index
                tried += 1
        assert tried > 20


def test_one_element_is_an_array_without_dimensions(tmp_path):
    save({"a": torch.arange(6.0).reshape(2, 3)}, tmp_path / "f.thalia")
    for framework, kind in (("np", np.ndarray), ("pt", torch.Tensor), ("flax", jnp.ndarray)):
        with thalia.safe_open(tmp_path / "f.thalia", framework) as file:
            found = file.get_slice("a")[1, 2]
            assert isinstance(found, kind) and found.shape == () and found == 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.bool], ids=str)
def test_a_folder_gives_other_layouts_and_no_elements(tmp_path, dtype):
    tensor, _ = codes_of(dtype)
    dcp.save(
        {"a": tensor, "none": tensor[:0], "one": tensor[0, 0, 0]}, storage_writer=ThaliaStorageWriter(tmp_path / "f")
    )
    into = {
        "a": torch.zeros(5, 4, 3).to(dtype).permute(2, 1, 0),
        "none": torch.zeros(0, 5, 4).to(dtype).transpose(1, 2),
        "one": torch.zeros(2).to(dtype)[1],
    }
    dcp.load(into, storage_reader=ThaliaStorageReader(tmp_path / "f"))
    assert bits(into["a"].contiguous()) == bits(tensor) and bits(into["one"]) == bits(tensor[0, 0, 0])
