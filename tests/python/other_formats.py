"""Files of other formats, and what their own libraries say of them."""

from pathlib import Path

import gguf
import numpy as np
import onnx
import pytest
import thalia_checkpoint as thalia
from onnx import numpy_helper

DATA = Path(__file__).resolve().parents[1] / "data/formats"
PACKED = {"int4", "uint4", "int2", "uint2", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"}


def same(found, expected):
    """Bit for bit, whatever the elements are."""
    found, expected = np.asarray(found), np.asarray(expected)
    if expected.dtype.name in PACKED:  # ml_dtypes heeds a part of each byte
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))
        return
    assert (found.dtype, found.shape) == (expected.dtype.newbyteorder("<"), expected.shape)
    little = np.ascontiguousarray(expected.astype(expected.dtype.newbyteorder("<")))
    assert found.tobytes() == little.tobytes()


def onnx_arrays(path):
    model = onnx.load(path)
    return {tensor.name: numpy_helper.to_array(tensor, str(path.parent)) for tensor in model.graph.initializer}


def of_gguf(path):
    return {str(tensor.name): tensor for tensor in gguf.GGUFReader(path).tensors}


#: A file of each format, and the array that lies in it in front.
FILES = {
    "gguf": ("gguf/key_values.gguf", "t.float32"),
    "onnx": ("onnx/raw.onnx", "float"),
    "pt": ("pt/train.pt", "model.0.weight"),
    "npz": ("npz/stored.npz", "layer/weight"),
    "npy": ("npz/array.npy", "array"),
    "gptrs": ("gptrs/py_gpt_small.gptrschk", "blocks.0.attention.w_qkv"),
    "gptrsten": ("gptrs/py_mixed.gptrsten", "input"),
    "entity": ("loom/dtype/float32.entity", "layers.0"),
    "loom-json": ("loom/dtype/float32.json", "layers.0"),
    "mst": ("mithril/small.mst", "w.f32"),
    "mithril-quantized": ("mithril/quant_int8.zst", "codes"),
    "mithril-orbax": ("mithril/orbax_ck", None),
}
every_format = pytest.mark.parametrize("format", FILES)


def opened(format, **options):
    file = thalia.open(DATA / FILES[format][0], **options)
    return file, file[FILES[format][1] or next(iter(file))]
