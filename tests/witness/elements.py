"""Element types: widths, and the values that their bits stand for."""

import struct

# Name, bits of an element, alignment in bytes; in the order of the codes.
DTYPES = (
    ("f32", 32, 4),
    ("f16", 16, 2),
    ("i8", 8, 1),
    ("f64", 64, 8),
    ("bf16", 16, 2),
    ("i16", 16, 2),
    ("i32", 32, 4),
    ("i64", 64, 8),
    ("u8", 8, 1),
    ("u16", 16, 2),
    ("u32", 32, 4),
    ("u64", 64, 8),
    ("bool", 8, 1),
    ("f8_e4m3", 8, 1),
    ("f8_e5m2", 8, 1),
    ("f8_e8m0", 8, 1),
    ("f8_e4m3fnuz", 8, 1),
    ("f8_e5m2fnuz", 8, 1),
    ("f6_e2m3", 6, 1),
    ("f6_e3m2", 6, 1),
    ("f4_e2m1", 4, 1),
    ("i4", 4, 1),
    ("u4", 4, 1),
    ("i2", 2, 1),
    ("u2", 2, 1),
    ("ternary", 2, 1),
    ("binary", 1, 1),
    ("c64", 64, 4),
    ("c128", 128, 8),
)

STRUCT_CODES = {
    "f32": "f",
    "f16": "e",
    "i8": "b",
    "f64": "d",
    "i16": "h",
    "i32": "i",
    "i64": "q",
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "Q",
}

# Exponent bits, mantissa bits, bias; infinities; the codes that are NaN.
SMALL_FLOATS = {
    "f8_e4m3": (4, 3, 7, (), (0x7F, 0xFF)),
    "f8_e5m2": (5, 2, 15, (0x7C, 0xFC), (0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF)),
    "f8_e4m3fnuz": (4, 3, 8, (), (0x80,)),
    "f8_e5m2fnuz": (5, 2, 16, (), (0x80,)),
    "f6_e2m3": (2, 3, 1, (), ()),
    "f6_e3m2": (3, 2, 3, (), ()),
    "f4_e2m1": (2, 1, 1, (), ()),
}


def bits_of(dtype):
    return next(bits for name, bits, _ in DTYPES if name == dtype)


def alignment_of(dtype):
    return next(alignment for name, _, alignment in DTYPES if name == dtype)


def codes(data, count, bits):
    """The elements of a stream of bits, lowest first, as unsigned integers."""
    held = have = at = 0
    for _ in range(count):
        while have < bits:
            held |= data[at] << have
            have += 8
            at += 1
        yield held & ((1 << bits) - 1)
        held >>= bits
        have -= bits


def small_float(code, exponent_bits, mantissa_bits, bias, infinities, nans):
    sign = -1.0 if code >> (exponent_bits + mantissa_bits) else 1.0
    if code in nans:
        return float("nan")
    if code in infinities:
        return sign * float("inf")
    exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
    fraction = (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias)
    return sign * (1 + fraction) * 2.0 ** (exponent - bias)


def values(dtype, data, count):
    """The elements as Python numbers and booleans."""
    if dtype in STRUCT_CODES:
        return list(struct.unpack(f"<{count}{STRUCT_CODES[dtype]}", data))
    if dtype == "bf16":
        return [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, 2 * count, 2)]
    if dtype in ("c64", "c128"):
        flat = values("f32" if dtype == "c64" else "f64", data, 2 * count)
        return [complex(re, im) for re, im in zip(flat[::2], flat[1::2], strict=True)]
    bits = bits_of(dtype)
    unsigned = codes(data, count, bits)
    if dtype == "bool":
        return [code != 0 for code in unsigned]
    if dtype == "f8_e8m0":
        return [float("nan") if code == 0xFF else 2.0 ** (code - 127) for code in unsigned]
    if dtype in SMALL_FLOATS:
        return [small_float(code, *SMALL_FLOATS[dtype]) for code in unsigned]
    if dtype == "binary":
        return [1 if code else -1 for code in unsigned]
    if dtype in ("i4", "i2", "ternary"):
        signed = [code - (1 << bits) if code >> (bits - 1) else code for code in unsigned]
        if dtype == "ternary" and -2 in signed:
            raise ValueError(f"illegal ternary code 10 at element {signed.index(-2)}")
        return signed
    return list(unsigned)


def has_illegal_codes(dtype, data):
    """Bytes of a bool other than 0 and 1; the code 10 of a ternary."""
    if dtype == "bool":
        return bool(data.strip(b"\0\1"))
    return dtype == "ternary" and any(byte >> 1 & ~byte & 0x55 for byte in data)


def unused_bits(dtype, data, count):
    """The bits behind the last element of a packed type, which are zero in a file."""
    used = count * bits_of(dtype) % 8
    return data[-1] >> used if used else 0
