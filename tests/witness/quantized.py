"""Quantized tensors: their side data, their arrays, and the numbers that come out."""

import math
import struct

import digests
import elements
import structures as s
from structures import align

# Format of struct, exponent of the least normal number, bits of the mantissa, the largest number.
TYPES = {
    "f16": ("e", -14, 10, 65504.0),
    "bf16": (None, -126, 7, (2 - 2.0**-7) * 2.0**127),
    "f32": ("f", -126, 23, (2 - 2.0**-23) * 2.0**127),
    "f64": ("d", -1022, 52, (2 - 2.0**-52) * 2.0**1023),
}


def packed_length(count, bits):
    return -(-count * bits // 8)


def rounded(dtype, number):
    """A number in its type, rounded once, as the bytes of an element."""
    code, least, mantissa, _ = TYPES[dtype]
    if code is None and math.isnan(number):
        return b"\xc0\x7f"
    if code is None:  # as struct knows no bfloat16: whole units in the last place, halves to even
        exponent = max(math.frexp(number)[1] - 1, least) if number else least
        unit = math.ldexp(1.0, exponent - mantissa)
        return struct.pack("<f", math.copysign(round(number / unit) * unit, number))[2:]
    return struct.pack("<" + code, number)


class Quantized:
    """The side data of a tensor's entry, checked, and where its arrays stand."""

    def __init__(self, file, entry, dtype, count):
        entry.require("dtype", dtype in TYPES, "f16, bf16, f32 or f64")
        entry.require("side_data_length", entry.side_data_length == 64, 64)
        directory = file.directory
        entry.require(
            "side_data_offset",
            entry.side_data_offset + 64 <= directory.side_data_length,
            directory.side_data_length,
        )
        base = file.header.directory_offset + directory.side_data_offset
        side = s.QUANTIZED_TENSOR.read(file.data, base + entry.side_data_offset)
        side.require_zero()
        side.require("bits", side.bits <= 8, "0 to 8")
        bound = side.max_lossy_generations
        side.require("lossy_generation", 1 <= side.lossy_generation <= bound, f"1 to {bound}")
        group = side.group_size
        legal = group % 8 == 0 and group <= 65536 and (group > 0 or side.bits > 0)
        side.require("group_size", legal, "a multiple of 8 up to 65536")
        for field in "max_error", "rms_error":
            error = struct.unpack("<d", struct.pack("<Q", getattr(side, field)))[0]
            side.require(field, math.isfinite(error) and error >= 0, "0 or more, and finite")
        self.side, self.dtype, self.count = side, dtype, count
        self.group_size = group or count
        self.groups = -(-count // self.group_size) if count else 0
        self.parameter = "d" if dtype == "f64" else "f"
        width = 8 if dtype == "f64" else 4
        self.minima_at = align(self.groups if side.bits == 0 else 0, width)
        self.scales_at = self.minima_at + self.groups * width
        self.codes_at = self.scales_at + self.groups * width
        self.length = self.codes_at + side.code_length

    def restore(self, data):
        """The elements, as bytes."""
        side = self.side
        widths = list(data[: self.groups]) if side.bits == 0 else [side.bits] * self.groups
        side.require("bits", all(width <= 8 for width in widths), "widths of 0 to 8")
        padding = data[self.groups if side.bits == 0 else 0 : self.minima_at]
        side.require("bits", not any(padding), "zero padding before the minima")
        form = f"<{self.groups}{self.parameter}"
        minima = struct.unpack(form, data[self.minima_at : self.scales_at])
        scales = struct.unpack(form, data[self.scales_at : self.codes_at])
        largest = TYPES[self.dtype][3]
        at, left, out = self.codes_at, self.count, []
        for bits, minimum, scale in zip(widths, minima, scales, strict=True):
            size = min(self.group_size, left)
            left -= size
            length = packed_length(size, bits)
            used = size * bits % 8
            side.require("bits", not used or data[at + length - 1] >> used == 0, "unused bits zero")
            codes = elements.codes(data[at : at + length], size, bits) if bits else [0] * size
            at += length
            legal = math.isfinite(minimum) and math.isfinite(scale) and scale >= 0
            side.require("bits", legal and (bits > 0 or scale == 0), "finite parameters")
            numbers = (minimum + code * scale for code in codes)
            out += [rounded(self.dtype, max(-largest, min(n, largest))) for n in numbers]
        side.require("code_length", at == len(data), at - self.codes_at)
        restored = b"".join(out)
        crc = digests.crc32(restored)
        side.require("crc32", side.crc32 == crc, crc, "IntegrityError")
        digest = digests.content_hash(restored)
        if digest is not None:
            same = side.content_hash == digest
            side.require("content_hash", same, digest.hex(" "), "IntegrityError")
        return memoryview(restored)
