"""Writes step_delta by the page alone, with any header and tables: what the library's writer never chooses, too."""

import struct

from step_delta import SYMBOLS, TOTAL, StepDelta


class BitWriter:
    def __init__(self):
        self.number = self.count = 0

    def put(self, value, bits):
        self.number |= value << self.count
        self.count += bits

    def bytes(self):
        return self.number.to_bytes(-(-self.count // 8), "little")


def tables_of(classes):
    """Explicit tables. classes: for each class None, or the eight (l, m) of its numbers."""
    bits = BitWriter()
    for numbers in classes:
        bits.put(int(numbers is not None), 1)
        for length, mantissa in numbers or ():
            bits.put(length, 4)
            bits.put(mantissa, min(length - 1, 3) if length else 0)
    return bytes([len(classes)]) + bits.bytes()


def symbol_of(step, width):
    """(symbol, offset, bits of the offset)"""
    distance = abs(step)
    for k, (least, count) in enumerate(SYMBOLS):
        if least <= distance < least + (1 << count):
            return 2 * k + 1 + (step < 0), distance - least, count
    return (15, step % (1 << width), width) if step else (0, 0, 0)


def chunk_of(payload, base, new, last=1 << 16):
    """payload: a StepDelta, for its header and tables. last: the state where the chunk ends."""
    lanes = 1 << payload.header.lanes_log2
    half = 1 << payload.bits - 1
    offsets, coded = BitWriter(), []
    for old, element in zip(base, new, strict=True):
        step = (payload.ordinal(element) - payload.ordinal(old) + half) % (2 * half) - half
        symbol, offset, count = symbol_of(step, payload.bits)
        offsets.put(offset, count)
        alphabet = payload.alphabet(old)
        coded.append((alphabet.frequencies[symbol], alphabet.starts[symbol]))
    states, words = [last] * lanes, []
    for first in reversed(range(0, len(coded), lanes)):
        group = coded[first : first + lanes]
        for lane in reversed(range(len(group))):
            frequency, start = group[lane]
            if states[lane] >= frequency << 17:
                words.append(states[lane] & 0xFFFF)
                states[lane] >>= 16
            states[lane] = states[lane] // frequency * TOTAL + states[lane] % frequency + start
    words.reverse()
    return struct.pack(f"<{lanes}I{len(words)}H", *states, *words) + offsets.bytes()[::-1]


def coding(dtype, count, header, classes=None):
    """Header and tables alone, as a StepDelta without chunks."""
    size = 1 << header[3]
    lengths = -(-count // size) if count > size else 0
    payload = StepDelta.__new__(StepDelta)
    payload.open(dtype, count, bytes(header) + bytes(4 * lengths) + (tables_of(classes) if classes else b""))
    return payload


def step_delta(dtype, base, new, header, classes=None):
    """The stored bytes. header: table, first_class, lanes_log2, chunk_log2. base, new: elements as numbers."""
    payload, chunks, at = coding(dtype, len(base), header, classes), [], 0
    for count in payload.counts:
        chunks.append(chunk_of(payload, base[at : at + count], new[at : at + count]))
        at += count
    lengths = [len(chunk) for chunk in chunks] if len(chunks) > 1 else []
    tables = payload.data[payload.lengths_end :]
    return bytes(header) + struct.pack(f"<{len(lengths)}I", *lengths) + tables + b"".join(chunks)
