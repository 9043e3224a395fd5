"""Chunks that the library encoded, decoded from docs/format/format.md alone.

Usage: chunk_codecs_test.py WITNESS_FILES
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import chunk_codecs as codecs

WITNESS_FILES = sys.argv.pop(1)

DECODERS = {
    "plane_entropy": codecs.decode_plane_entropy,
    "packed_exponents": codecs.decode_packed_exponents,
}

# The examples of docs/format/examples.md.
PACKED = "02080100 01000000 7f 0800000000000000 00000001" + 36 * "00" + "80"
CODED = (
    "01000000 02000000a6000000 000000000000000000000000060000000000000000000000000000000000 0000"
    "d70f2900" + 7 * "d08c0000" + "e52f0800" + 4 * "d08c0000" + 20 * "888b0000" + "f4bf"
)


class Codecs(unittest.TestCase):
    def test_examples_of_the_document(self):
        raw = bytearray(40 * b"\x80\x3f")
        raw[6:8] = b"\x00\xc0"
        self.assertEqual(codecs.decode_packed_exponents(bytes.fromhex(PACKED), 80), raw)
        raw = bytearray(300 * b"a")
        raw[7] = raw[39] = raw[71] = ord("b")
        self.assertEqual(codecs.decode_plane_entropy(bytes.fromhex(CODED), 300), raw)

    def test_damage_of_the_examples_is_refused(self):
        for decode, text, length in (
            (codecs.decode_packed_exponents, PACKED, 80),
            (codecs.decode_plane_entropy, CODED, 300),
        ):
            stored = bytes.fromhex(text)
            for end in range(len(stored)):
                with self.assertRaises(ValueError):
                    decode(stored[:end], length)
            with self.assertRaises(ValueError):
                decode(stored + b"\0", length)

    def test_chunks_of_the_library_decode_to_their_raw_bytes(self):
        seen = set()
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([WITNESS_FILES, "chunks", folder], check=True)
            for path in sorted(pathlib.Path(folder).iterdir()):
                how = path.suffix[1:]
                if how == "raw":
                    continue
                raw = path.with_suffix(".raw").read_bytes()
                stored = path.read_bytes()
                with self.subTest(path=path.name):
                    if how in DECODERS:
                        self.assertLess(len(stored), len(raw))
                        self.assertEqual(DECODERS[how](stored, len(raw)), raw)
                        seen.add(path.name)
                    else:
                        self.assertEqual(codecs.undo_filter(how, stored), raw)
        names = ("bf16", "f16", "f32", "f64", "i64", "bytes", "zeros")
        expected = {f"{name}.plane_entropy" for name in names}
        expected |= {f"{name}.packed_exponents" for name in names[:4]}
        self.assertEqual(seen, expected)


if __name__ == "__main__":
    unittest.main()
