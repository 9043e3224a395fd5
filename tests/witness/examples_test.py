"""Every example of bytes in the format's pages is what the library writes, and decodes as it says.

Usage: examples_test.py WITNESS_FILES
"""

import hashlib
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import types
import unittest

import chunk_codecs
import hex_examples as examples
import structures as s
from chain import Link
from low_rank import apply_low_rank
from step_delta import apply_step

WITNESS_FILES = sys.argv[1]
PAGES = pathlib.Path(__file__).parents[2] / "docs/format"
DOCUMENT = "\n".join((PAGES / f"{name}.md").read_text(encoding="utf-8") for name in ("format", "deltas", "examples"))
HEX = re.compile(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)(?:  |$)", re.MULTILINE)

# What the two examples of codecs stand for: numbers of bf16, and bytes.
NUMBERS = b"\x80\x3f" * 3 + b"\x00\xc0" + b"\x80\x3f" * 36
LETTERS = bytes(0x62 if i in (7, 39, 71) else 0x61 for i in range(300))
CODECS = (
    (chunk_codecs.decode_packed_exponents, NUMBERS),
    (chunk_codecs.decode_plane_entropy, LETTERS),
)
BLOCKS = [block for block in DOCUMENT.split("```\n")[1::2] if HEX.search(block)]


def bytes_of(block):
    return b"".join(bytes.fromhex(part) for _, part in HEX.findall(block))


def is_chunk(block, decode, raw):
    try:
        return decode(bytes_of(block), len(raw)) == raw
    except ValueError:
        return False


class Examples(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([WITNESS_FILES, "examples", cls.folder.name], check=True)
        cls.data = {p.name: p.read_bytes() for p in pathlib.Path(cls.folder.name).iterdir()}
        delta = Link(pathlib.Path(cls.folder.name, "step_2.delta.thalia"))
        cls.expected = [
            examples.coo(cls.data["arrays.thalia"]),
            *examples.quantized(cls.data["arrays.thalia"]),
            *examples.sparse_delta(delta.file.data),
            examples.low_rank_delta(),
            examples.step_example(),
            examples.delta_front(cls.data["step_2.delta.thalia"]),
            examples.side_file(cls.data["arrays.thalia.meta"]),
        ]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_document_shows_what_the_library_writes(self):
        for text in self.expected:
            with self.subTest(begins=text[:60]):
                self.assertIn(text, BLOCKS)

    def test_seek_table_is_the_librarys_but_for_what_zstd_made_of_the_frames(self):
        data = self.data["step_1.thalia.zst"]
        table = bytearray(data[-(8 + 2 * 8 + 9) :])
        shown = next(block for block in BLOCKS if "stored_length" in block)
        self.assertIn("TLZ4", DOCUMENT)
        for at in (8, 16):
            table[at : at + 4] = bytes_of(shown)[at : at + 4]
        self.assertEqual(bytes_of(shown), bytes(table))
        entries = [s.SEEK_ENTRY.read(data, len(data) - 25 + 8 * i) for i in range(2)]
        self.assertEqual(sum(e.stored_length for e in entries), len(data) - len(table))
        content = sum(e.content_length for e in entries)
        self.assertEqual(content, len(self.data["step_1.thalia"]))

    def test_change_of_low_rank_comes_out_as_the_document_says(self):
        data = examples.low_rank_payload()
        tensor = types.SimpleNamespace(shape=(2, 3), dtype="f32", data=data)
        made = apply_low_rank(tensor, struct.pack("<6f", *examples.LOW_RANK_BASE))
        self.assertEqual(struct.unpack("<6f", made), examples.LOW_RANK_RESULT)
        for row in (examples.LOW_RANK_BASE, examples.LOW_RANK_RESULT):
            self.assertIn(", ".join(map(str, row)), DOCUMENT)

    def test_steps_come_out_as_the_document_says(self):
        tensor = types.SimpleNamespace(dtype="bf16", count=10, data=examples.step_payload())
        made = apply_step(tensor, struct.pack("<10H", *examples.STEP_BASE))
        self.assertEqual(struct.unpack("<10H", made), examples.STEP_RESULT)
        for row in (examples.STEP_BASE, examples.STEP_RESULT):
            self.assertIn(" ".join(f"{bits:04X}" for bits in row) + "\n", DOCUMENT)

    def test_side_file_ends_with_the_hash_of_all_before(self):
        data = self.data["arrays.thalia.meta"]
        self.assertEqual(hashlib.sha256(data[:-32]).digest(), data[-32:])

    def test_chunks_decode_as_the_document_says(self):
        for decode, raw in CODECS:
            self.assertEqual(sum(is_chunk(block, decode, raw) for block in BLOCKS), 1)

    def test_every_block_of_bytes_is_checked_here_or_as_the_worked_example(self):
        known = [block for block in BLOCKS if any(is_chunk(block, *codec) for codec in CODECS)]
        known += [b for b in BLOCKS if "stored_length" in b or b.startswith("Header:\n")]
        self.assertEqual(set(BLOCKS), {*known, *self.expected})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
