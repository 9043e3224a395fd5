"""Steps come out as they went in, whatever header and tables say, and the predefined rows are everywhere the same.

Usage: step_delta_test.py
"""

import pathlib
import random
import re
import struct
import unittest

import step_rows
from step_delta import FIELDS, TYPES, StepDelta
from step_writer import step_delta
from structures import Refused

ROOT = pathlib.Path(__file__).parents[2]
NUMBERS = [(5, 3), (3, 1), (2, 0), (1, 0), (4, 7), (0, 0), (1, 0), (1, 0)]
EVERY = [(5, 3), (3, 1), (2, 0), (1, 0), (4, 7), (2, 1), (1, 0), (1, 0)]


def changed(numbers, bits, chance):
    """Steps of every size."""
    out = []
    for number in numbers:
        size = 1 << chance.randrange(bits)
        step = chance.choice((0, 0, 0, chance.randrange(-size, size + 1)))
        out.append((number + step) % (1 << bits))
    return out


class Steps(unittest.TestCase):
    def test_every_type_header_and_table(self):
        chance = random.Random(1)
        for dtype in TYPES:
            bits = 16 if dtype.endswith("16") else 8
            for count, header, classes in (
                (0, (0, 0, 0, 12), None),
                (1, (127, 0, 5, 12), None),
                (100, (30, 0, 0, 12), None),
                (5000, (90, 3, 3, 12), None),
                (4096, (255, 2, 1, 12), [EVERY]),
                (4097, (255, 1, 2, 13), [None, EVERY, None]),
            ):
                if dtype not in FIELDS:
                    header = (header[0], 0, *header[2:])
                with self.subTest(dtype=dtype, count=count):
                    base = [chance.randrange(1 << bits) for _ in range(count)]
                    new = changed(base, bits, chance)
                    data = step_delta(dtype, base, new, header, classes)
                    form = f"<{count}{'H' if bits == 16 else 'B'}"
                    made = StepDelta(dtype, count, data).apply(struct.pack(form, *base))
                    self.assertEqual(list(struct.unpack(form, made)), new)

    def test_every_shorter_one_and_what_is_behind_it_is_refused(self):
        chance = random.Random(2)
        base = [chance.randrange(1 << 16) for _ in range(40)]
        new = changed(base, 16, chance)
        raw = struct.pack("<40H", *base)
        for header, classes in ((40, 0, 1, 12), None), ((255, 0, 2, 12), [EVERY] * 3):
            data = step_delta("bf16", base, new, header, classes)
            StepDelta("bf16", 40, data).apply(raw)
            for broken in (*(data[:i] for i in range(len(data))), data + b"\0", data[:-1] + b"\0\0" + data[-1:]):
                with self.assertRaises(Refused):
                    StepDelta("bf16", 40, broken).apply(raw)

    def test_predefined_rows_are_those_of_page_and_code(self):
        page = (ROOT / "docs/format/deltas.md").read_text(encoding="utf-8")
        self.assertIn("\n".join(step_rows.document_lines()) + "\n", page)
        code = (ROOT / "src/codec/step/step_rows.cc").read_text(encoding="utf-8")
        found = re.findall(r"\{((?:\d+, ){7}\d+)\}", code)
        self.assertEqual(found, [", ".join(map(str, row)) for row in step_rows.rows()])


if __name__ == "__main__":
    unittest.main()
