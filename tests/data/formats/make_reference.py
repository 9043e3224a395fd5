"""Writes the files beside it with the reference implementation, safetensors 0.8.0.

They are golden: run this only to add a file, never to change one. The order of `__metadata__` is
left to chance by the reference, so a second run gives other bytes for metadata.safetensors.
"""

from pathlib import Path

import numpy
from safetensors import TensorSpec, serialize

# The names that the reference takes, and the bytes of an element (of two for F4).
ELEMENT_BYTES = {
    "bool": 1,
    "float4_e2m1fn_x2": 1,
    "uint8": 1,
    "int8": 1,
    "float8_e5m2": 1,
    "float8_e4m3fn": 1,
    "float8_e8m0fnu": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "int16": 2,
    "uint16": 2,
    "float16": 2,
    "bfloat16": 2,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "complex64": 8,
    "float64": 8,
    "int64": 8,
    "uint64": 8,
}
NAMES = [
    "",
    " ",
    ".",
    "..",
    "a",
    "A",
    "a.0",
    "a.0.b",
    "a.10.b",
    "a.9.b",
    "\x00",
    "a\x00b",
    "\n",
    "\t\r\b\f",
    "\x01\x1f\x7f",
    '"',
    "\\",
    "/",
    "'",
    "é",
    "e\u0301",
    "\u2028",
    "日本語",
    "😀",
    "\uffff",
    "{}",
    "dtype",
    "x" * 300,
]


def spec(dtype, shape, seed):
    count = int(numpy.prod(shape, dtype=numpy.int64))
    payload = numpy.random.default_rng(seed).integers(
        0, 2 if dtype == "bool" else 256, count * ELEMENT_BYTES[dtype], dtype=numpy.uint8
    )
    return payload, TensorSpec(dtype=dtype, shape=list(shape), data_ptr=payload.ctypes.data, data_len=payload.nbytes)


def write(name, tensors, metadata=None):
    """tensors: name to (dtype, shape)"""
    kept = {key: spec(dtype, shape, seed) for seed, (key, (dtype, shape)) in enumerate(tensors.items())}
    content = serialize({key: value[1] for key, value in kept.items()}, metadata=metadata)
    Path(__file__).with_name(name + ".safetensors").write_bytes(content)


def main():
    shapes = [(2,), (3, 2), (0,), (2, 0, 3), (1, 2, 1, 3)]
    tensors = {f"{dtype}.{i}": (dtype, shape) for dtype in ELEMENT_BYTES for i, shape in enumerate(shapes)}
    # A scalar F4 is half a byte, and the reference pairs them in the last dimension.
    tensors |= {f"{dtype}.scalar": (dtype, ()) for dtype in ELEMENT_BYTES if "float4" not in dtype}
    write("dtypes", tensors)
    write("names", {name: ("uint8", (1,)) for name in NAMES})
    write(
        "metadata",
        {"w": ("float32", (2,))},
        {"format": "pt", "é\n": "\u2028\x00", "": "", "a": '"\\/', "__metadata__": "x", "z": "{}"},
    )
    write("metadata_empty", {"w": ("float32", (2,))}, {})
    write("ranks", {f"rank{rank}": ("int16", (2,) * rank) for rank in range(9)})
    write("none", {})


if __name__ == "__main__":
    main()
