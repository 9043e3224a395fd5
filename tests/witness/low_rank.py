"""Changes of matrices as sums of products of a column and a row."""

import math
import struct

import elements
import structures as s
from quantized import TYPES, packed_length, rounded
from structures import align


def real(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def clamped(number, largest):
    return number if math.isnan(number) else max(-largest, min(number, largest))


def apply_low_rank(tensor, base):
    """The elements that come out of the base's, as bytes."""
    rows, columns = tensor.shape
    data = bytes(tensor.data)
    header = s.LOW_RANK_HEADER.read(data, 0)
    header.require_zero()
    rank, bound = header.rank, header.max_lossy_generations
    header.require("rank", rank <= min(rows, columns), min(rows, columns))
    header.require("lossy_generation", 1 <= header.lossy_generation <= bound, f"1 to {bound}")
    for field in "max_error", "rms_error", "relative_error":
        error = real(getattr(header, field))
        header.require(field, math.isfinite(error) and error >= 0, "0 or more, and finite")
    parameters = align(64 + rank, 8)
    at = parameters + 32 * rank
    header.require("code_length", at + header.code_length == len(data), len(data) - at)
    header.require("rank", not any(data[64 + rank : parameters]), "zero padding")
    sums = [0.0] * (rows * columns)
    for k in range(rank):
        bits = data[64 + k]
        header.require("rank", 1 <= bits <= 8, "widths of 1 to 8")
        four = struct.unpack_from("<4d", data, parameters + 32 * k)
        legal = all(map(math.isfinite, four)) and min(four[1], four[3]) >= 0
        header.require("rank", legal, "finite parameters")
        vectors = []
        for count, minimum, scale in (rows, *four[:2]), (columns, *four[2:]):
            length = packed_length(count, bits)
            used = count * bits % 8
            header.require("rank", not used or data[at + length - 1] >> used == 0, "unused bits zero")
            codes = elements.codes(data[at : at + length], count, bits)
            vectors.append([minimum + code * scale for code in codes])
            at += length
        left, right = vectors
        for i in range(rows):
            for j in range(columns):
                sums[i * columns + j] += left[i] * right[j]
    header.require("code_length", at == len(data), at)
    largest = TYPES[tensor.dtype][3]
    old = elements.values(tensor.dtype, base, rows * columns)
    results = [number + change for number, change in zip(old, sums, strict=True)]
    return b"".join(rounded(tensor.dtype, clamped(number, largest)) for number in results)
