"""Writes the GGUF files of this folder with the Python package gguf (0.19.0).

usage: make_vectors.py FOLDER

key_values.gguf  a value of each type, arrays, and tensors of elements
blocks.gguf      a tensor of each type of blocks that the package can dequantize, from fixed random
                 bytes; scales that are 0, infinite, NaN or subnormal among them
blocks.f32       what the package makes of these, one after the other
"""

import sys
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType, GGUFWriter, quants

BLOCKS = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4 NVFP4".split()
# Where the halves of a block stand that scale it.
HALVES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
    "TQ1_0": [52],
    "TQ2_0": [64],
    "MXFP4": [],
    "NVFP4": [],
}
# Zeros, the smallest and the largest subnormal, the largest number, infinity, NaNs.
EDGES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0x7C00, 0xFC00, 0x7E01, 0x7D55]
# Of large blocks fewer, to keep the files small.
FEW_EDGES = [0x0001, 0x7BFF, 0x7E01]


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def block_bytes(name, seed):
    """Two rows of blocks, of which the first ones have edges for scales."""
    elements, block = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    edges = FEW_EDGES if elements == 256 else EDGES
    data = np.random.default_rng(seed).integers(0, 256, size=(len(edges) + 1, block), dtype=np.uint8)
    for row, edge in enumerate(edges):
        for at in HALVES[name]:
            data[row, at : at + 2] = np.frombuffer(np.uint16(edge).tobytes(), dtype=np.uint8)
    if name == "MXFP4":
        data[:4, 0] = [0, 1, 2, 255]
    if name == "NVFP4":
        data[0, :4] = [0, 1, 0x7F, 0xFF]
    return data.reshape(2, -1)


def write_key_values(path):
    writer = GGUFWriter(path, "test")
    writer.add_uint8("a.u8", 255)
    writer.add_int8("a.i8", -128)
    writer.add_uint16("a.u16", 65535)
    writer.add_int16("a.i16", -32768)
    writer.add_uint32("a.u32", 4294967295)
    writer.add_int32("a.i32", -2147483648)
    writer.add_float32("a.f32", 0.1)
    writer.add_bool("a.true", True)
    writer.add_bool("a.false", False)
    writer.add_string("a.string", "grüß\ndich")
    writer.add_uint64("a.u64", 2**64 - 1)
    writer.add_int64("a.i64", -(2**63))
    writer.add_float64("a.f64", 0.1)
    writer.add_float32("a.nan", float("nan"))
    writer.add_float32("a.minus_zero", -0.0)
    writer.add_float64("a.minus_infinity", float("-inf"))
    writer.add_array("b.strings", ["", "a", "▁the"])
    writer.add_array("b.i32", [1, -2, 3])
    writer.add_array("b.f32", [0.5, -1e-45, 3.4028234663852886e38])
    writer.add_array("b.bool", [True, False])
    writer.add_key_value("b.bytes", [b"\xff\xfe", b"ok"], GGUFValueType.ARRAY)
    writer.add_key_value("b.u64", [2**53 + 1, 2**64 - 1], GGUFValueType.ARRAY, GGUFValueType.UINT64)
    writer.add_key_value("b.f64", [0.1, 1e300], GGUFValueType.ARRAY, GGUFValueType.FLOAT64)
    writer.add_key_value("c.not_utf8", b"\x80abc", GGUFValueType.STRING)
    writer.add_custom_alignment(64)
    for i, dtype in enumerate(["float32", "float16", "float64", "int8", "int16", "int32", "int64"]):
        writer.add_tensor(f"t.{dtype}", np.arange(i, i + 6).reshape(2, 3).astype(dtype))
    writer.add_tensor("t.bfloat16", np.arange(6, dtype=np.uint8).reshape(1, 6), raw_dtype=GGMLQuantizationType.BF16)
    writer.add_tensor("t.scalar", np.array(7, dtype=np.float32))
    writer.add_tensor("t.empty", np.zeros((0, 3), dtype=np.float32))
    writer.add_tensor("t.last", np.ones((1, 1, 1, 5), dtype=np.float32))
    finish(writer)


def write_blocks(folder):
    writer = GGUFWriter(folder / "blocks.gguf", "test")
    restored = []
    for seed, name in enumerate(BLOCKS):
        type_of = GGMLQuantizationType[name]
        data = block_bytes(name, seed)
        writer.add_tensor(name, data, raw_dtype=type_of)
        restored.append(quants.dequantize(data, type_of).tobytes())
    finish(writer)
    (folder / "blocks.f32").write_bytes(b"".join(restored))


def main():
    folder = Path(sys.argv[1])
    np.seterr(all="ignore")
    write_key_values(folder / "key_values.gguf")
    write_blocks(folder)


if __name__ == "__main__":
    main()
