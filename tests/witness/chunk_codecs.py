"""Filters and the codecs plane_entropy and packed_exponents, from docs/format/format.md alone.

Each function takes a chunk's stored bytes and its raw length. ValueError where the document says to
refuse.
"""

import struct

LOWEST_STATE = 1 << 15
FILTER_WIDTHS = {
    "byte_planes_2": 2,
    "byte_planes_4": 4,
    "byte_planes_8": 8,
    "difference_planes_4": 4,
    "difference_planes_8": 8,
}


class Stored:
    """Bytes that are taken from the front."""

    def __init__(self, data):
        self.rest = data

    def take(self, count):
        if count > len(self.rest):
            raise ValueError(f"{count} bytes wanted, {len(self.rest)} left")
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def integers(self, code, count):
        layout = f"<{count}{code}"
        return struct.unpack(layout, self.take(struct.calcsize(layout)))


def require(fulfilled, what):
    if not fulfilled:
        raise ValueError(what)


def words_of(planes, width, count):
    """Words as integers, of planes from the lowest bytes to the highest."""
    joined = bytearray(width * count)
    for k, plane in enumerate(planes):
        joined[k::width] = plane
    return [int.from_bytes(joined[i * width : (i + 1) * width], "little") for i in range(count)]


def bytes_of(words, width):
    return b"".join(word.to_bytes(width, "little") for word in words)


def rotated_right(words, width):
    return [word >> 1 | (word & 1) << (8 * width - 1) for word in words]


def undo_filter(name, filtered):
    """The raw bytes of what the filter of this name made of them."""
    if name == "none":
        return filtered
    width = FILTER_WIDTHS[name]
    count = len(filtered) // width
    planes = [filtered[k * count : (k + 1) * count] for k in range(width)]
    words = words_of(planes, width, count)
    if name.startswith("difference"):
        for i in range(1, count):
            words[i] = (words[i] + words[i - 1]) % (1 << 8 * width)
    return bytes_of(words, width) + filtered[count * width :]


def decode_plane(coded, count):
    """A coded plane of plane_entropy."""
    stored = Stored(coded)
    bitmap = stored.take(32)
    values = [value for value in range(256) if bitmap[value // 8] >> value % 8 & 1]
    frequencies = stored.integers("H", len(values))
    require(all(1 <= each <= 4095 for each in frequencies), "a frequency")
    require(sum(frequencies) == 4096, "the sum of frequencies")
    slots, start = [], 0
    for value, frequency in zip(values, frequencies, strict=True):
        slots += [(value, frequency, start)] * frequency
        start += frequency
    states = list(stored.integers("I", 32))
    require(all(LOWEST_STATE <= state < LOWEST_STATE << 16 for state in states), "a state")
    out = bytearray()
    for i in range(count):
        state = states[i % 32]
        value, frequency, start = slots[state % 4096]
        out.append(value)
        state = frequency * (state // 4096) + state % 4096 - start
        if state < LOWEST_STATE:
            state = state * 65536 + stored.integers("H", 1)[0]
        states[i % 32] = state
    require(not stored.rest, "words left")
    require(all(state == LOWEST_STATE for state in states), "a last state")
    return bytes(out)


def decode_plane_entropy(data, raw_length):
    stored = Stored(data)
    width, is_rotated, zero = stored.integers("B", 2) + stored.integers("H", 1)
    require(width in (1, 2, 4, 8), "element_bytes")
    require(is_rotated <= (width > 1) and zero == 0, "is_rotated or zero_2")
    count = raw_length // width
    entries = [stored.integers("B", 2) + stored.integers("H", 1) + stored.integers("I", 1) for _ in range(width)]
    planes = []
    for mode, value, zero, length in entries:
        require(mode <= 2 and zero == 0 and (mode == 1 or value == 0), "mode, value or zero_2")
        require(mode == 2 or length == (count, 0)[mode], "length")
        coded = stored.take(length)
        if mode == 0:
            planes.append(coded)
        elif mode == 1:
            planes.append(bytes([value]) * count)
        else:
            planes.append(decode_plane(coded, count))
    words = words_of(planes, width, count)
    if is_rotated:
        words = rotated_right(words, width)
    require(len(stored.rest) == raw_length % width, "the length of the tail")
    return bytes_of(words, width) + stored.rest


def bits_of(stored, bits, count):
    """`count` integers of `bits` bits, from groups of bit planes of 64."""
    out = []
    for _ in range(-(-count // 64)):
        planes = stored.integers("Q", bits)
        out += [sum((plane >> i & 1) << j for j, plane in enumerate(planes)) for i in range(64)]
    require(not any(out[count:]), "padding")
    return out[:count]


def decode_packed_exponents(data, raw_length):
    stored = Stored(data)
    width, symbol_bits, code_bits, zero = stored.integers("B", 4)
    (escape_count,) = stored.integers("I", 1)
    require(width in (2, 4, 8) and 1 <= symbol_bits <= 8, "element_bytes or symbol_bits")
    require(1 <= code_bits <= 4 and zero == 0, "code_bits or zero_3")
    low_bits, count, escape = 8 - symbol_bits, raw_length // width, (1 << code_bits) - 1
    symbols = stored.take(escape)
    codes = bits_of(stored, code_bits, count)
    low = bits_of(stored, low_bits, count)
    planes = [stored.take(count) for _ in range(width - 1)]
    tail = stored.take(raw_length % width)
    escapes = stored.take(escape_count)
    require(not stored.rest and codes.count(escape) == escape_count, "escape_count")
    require(all(each % (1 << low_bits) == 0 for each in symbols + escapes), "a symbol")
    escaped = iter(escapes)
    highest = bytes(
        (next(escaped) if code == escape else symbols[code]) | each for code, each in zip(codes, low, strict=True)
    )
    words = words_of([*planes, highest], width, count)
    return bytes_of(rotated_right(words, width), width) + tail
