"""Steps of elements in the order of values: docs/format/deltas.md, "step_delta"."""

import struct

import step_rows
import structures as s
from structures import Refused

TOTAL = step_rows.TOTAL
# Bits of an exponent field and of a mantissa. Types that are not here have neither, and no sign.
FIELDS = {
    "f16": (5, 10),
    "bf16": (8, 7),
    "f8_e4m3": (4, 3),
    "f8_e5m2": (5, 2),
    "f8_e4m3fnuz": (4, 3),
    "f8_e5m2fnuz": (5, 2),
}
TYPES = (*FIELDS, "f8_e8m0", "i8", "u8", "i16", "u16")
# Least distance and bits of the offset, of the symbols 1, 3, 5 and so on, whose next is the negative.
SYMBOLS = ((1, 0), (2, 0), (3, 0), (4, 2), (8, 3), (16, 4), (32, 5))
ABSENT = [1] * 8


class Bits:
    """Numbers of a few bits, lowest first. `data` gives the bytes in the order in which they are filled."""

    def __init__(self, data, fail):
        self.data, self.at, self.fail = data, 0, fail

    def take(self, count):
        end = self.at + count
        if end > 8 * len(self.data):
            self.fail()
        number = int.from_bytes(self.data[self.at // 8 : -(-end // 8)], "little")
        number = (number >> self.at % 8) % (1 << count)
        self.at = end
        return number

    def used(self):
        """Bytes; the unused bits of the last one are zero."""
        if self.at % 8 and self.data[self.at // 8] >> self.at % 8:
            self.fail()
        return -(-self.at // 8)


class Alphabet:
    """The 16 symbols of a class."""

    def __init__(self, gs):
        self.frequencies = [step_rows.zero(gs), *(g for g in gs[:7] for _ in range(2)), gs[7]]
        self.starts = [sum(self.frequencies[:symbol]) for symbol in range(16)]

    def at(self, slot):
        """The symbol, its frequency and its start."""
        symbol = max(k for k in range(16) if self.frequencies[k] and self.starts[k] <= slot)
        return symbol, self.frequencies[symbol], self.starts[symbol]


class StepDelta:
    """Header and tables of the stored bytes, checked, and the chunks."""

    def __init__(self, dtype, count, data):
        self.open(dtype, count, data)
        at, lengths = self.lengths_end, self.lengths
        if self.header.table == 255:
            at = self.tables_end
        if len(self.counts) == 1:
            lengths = [len(self.data) - at]
        if at + sum(lengths) != len(self.data):
            self.refuse("chunk_lengths", sum(lengths), len(self.data) - at)
        self.chunks = []
        for length in lengths:
            self.chunks.append(self.data[at : at + length])
            at += length

    def open(self, dtype, count, data):
        """Header, lengths and tables."""
        self.dtype, self.data = dtype, bytes(data)
        self.bits = 16 if dtype.endswith("16") else 8
        self.header = s.STEP_DELTA_HEADER.read(self.data, 0)
        header = self.header
        header.require("table", header.table < 128 or header.table == 255, "0 to 127, or 255")
        header.require("first_class", dtype in FIELDS or header.first_class == 0, 0)
        header.require("lanes_log2", header.lanes_log2 <= 5, "0 to 5")
        header.require("chunk_log2", 12 <= header.chunk_log2 <= 24, "12 to 24")
        size = 1 << header.chunk_log2
        self.counts = [min(size, count - at) for at in range(0, count, size)]
        self.lengths_end, self.lengths = 4, ()
        if len(self.counts) > 1:
            self.lengths_end += 4 * len(self.counts)
            if self.lengths_end > len(self.data):
                self.refuse("chunk_lengths", len(self.data), self.lengths_end)
            self.lengths = struct.unpack_from(f"<{len(self.counts)}I", self.data, 4)
        if header.table == 255:
            self.classes = self.read_tables()
        else:
            self.classes = [Alphabet(step_rows.row(max(0, min(header.table - 2 * c, 47)))) for c in range(32)]

    def refuse(self, field, value, bound):
        raise Refused("FormatError", "payload", field, 0, value, bound)

    def read_tables(self):
        def fail():
            self.refuse("tables", "other bits", "tables as the page has them")

        at = self.lengths_end
        if at >= len(self.data) or not 1 <= self.data[at] <= 32:
            fail()
        bits, classes = Bits(self.data[at + 1 :], fail), []
        for _ in range(self.data[at]):
            gs = ABSENT
            if bits.take(1):
                gs = []
                for _ in range(8):
                    length = bits.take(4)
                    mantissa = bits.take(min(length - 1, 3)) if length else 0
                    gs.append((1 << length - 1) + (mantissa << max(0, length - 4)) if length else 0)
                if step_rows.zero(gs) < 1:
                    fail()
            classes.append(Alphabet(gs))
        self.tables_end = at + 1 + bits.used()
        return classes

    def alphabet(self, element):
        """That of the class of a base's element."""
        if self.dtype not in FIELDS:
            return self.classes[0]
        exponent, mantissa = FIELDS[self.dtype]
        number = (element >> mantissa) % (1 << exponent) - self.header.first_class
        return self.classes[max(0, min(number, 31, len(self.classes) - 1))]

    def ordinal(self, element):
        top = 1 << self.bits - 1
        if self.dtype not in FIELDS:
            return element
        return element ^ (2 * top - 1) if element & top else element | top

    def element(self, ordinal):
        top = 1 << self.bits - 1
        if self.dtype not in FIELDS:
            return ordinal
        return ordinal ^ top if ordinal & top else ordinal ^ (2 * top - 1)

    def decode(self, number, base):
        """The elements of a chunk, from those of the base."""
        data = self.chunks[number]

        def fail():
            self.refuse("chunks", f"chunk {number}", "one that decodes")

        lanes = 1 << self.header.lanes_log2
        if len(data) < 4 * lanes:
            fail()
        states = list(struct.unpack_from(f"<{lanes}I", data))
        if min(states) < 1 << 16:
            fail()
        offsets, at, out = Bits(data[::-1], fail), 4 * lanes, []
        for first in range(0, len(base), lanes):
            group = base[first : first + lanes]
            for lane, element in enumerate(group):
                slot = states[lane] % TOTAL
                symbol, frequency, start = self.alphabet(element).at(slot)
                states[lane] = frequency * (states[lane] // TOTAL) + slot - start
                step = self.step(symbol, offsets)
                out.append(self.element((self.ordinal(element) + step) % (1 << self.bits)))
            for lane in range(len(group)):
                if states[lane] < 1 << 16:
                    if at + 2 > len(data):
                        fail()
                    states[lane] = states[lane] << 16 | int.from_bytes(data[at : at + 2], "little")
                    at += 2
        if any(x != 1 << 16 for x in states) or at + offsets.used() != len(data):
            fail()
        return out

    def step(self, symbol, offsets):
        if symbol == 0:
            return 0
        if symbol == 15:
            return offsets.take(self.bits)
        least, count = SYMBOLS[(symbol - 1) // 2]
        distance = least + offsets.take(count)
        return distance if symbol % 2 else -distance

    def apply(self, base):
        """The bytes that come out of the base's."""
        form = "B" if self.bits == 8 else "H"
        old = struct.unpack(f"<{len(base) * 8 // self.bits}{form}", base)
        new, at = [], 0
        for number, count in enumerate(self.counts):
            new += self.decode(number, old[at : at + count])
            at += count
        return struct.pack(f"<{len(new)}{form}", *new)


def apply_step(tensor, base):
    return StepDelta(tensor.dtype, tensor.count, tensor.data).apply(base)
