"""The witness resolves chains of deltas to the bytes that were saved, and refuses broken ones.

Usage: chain_test.py WITNESS_FILES
"""

import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import digests
import packed
from chain import Chain
from structures import Refused

WITNESS_FILES = sys.argv[1]
LINKS = 4  # deltas
PACKED = ("packed",) if digests.xxhash and digests.zstandard else ()


def decode_with_program(stored, raw_length):
    """Where the package is absent: frames are what any zstd restores."""
    done = subprocess.run(["zstd", "-dq"], input=stored, capture_output=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.decode())
    return done.stdout


def file_name(key):
    owner, name = key
    return f"{owner if isinstance(owner, str) else '>'.join(owner)}+{name}"


class Chains(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([WITNESS_FILES, "chain", cls.folder.name], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return pathlib.Path(self.folder.name, name)

    def test_every_state_is_what_was_saved(self):
        encodings = set()
        for codec in ("raw", "zstd", *PACKED):
            for i in range(LINKS + 1):
                with self.subTest(codec=codec, link=i):
                    chain = Chain(self.path(f"{codec}-{i}.thalia"))
                    self.assertEqual(len(chain.links), i + 1)
                    found = {file_name(key): data for key, data in chain.tensors()}
                    saved = {p.name: p.read_bytes() for p in self.path(f"{i}.expected").iterdir()}
                    self.assertEqual(found, saved)
                    encodings |= {t.encoding for t in chain.links[0].file.tensors}
        wanted = {"same_as_base", "xor_base", "sparse_delta", "step_delta", "dense", "csr"}
        self.assertLessEqual(wanted, encodings)

    def test_what_a_packed_delta_stands_for_is_made_of_it_or_refused(self):
        for name in PACKED:
            for i in range(1, LINKS + 1):
                data = self.path(f"{name}-{i}.thalia").read_bytes()
                self.assertTrue(packed.is_packed(data))
                contents = packed.unpack(data)
                self.assertGreater(len(contents), len(data))
                end = len(data) if i == 1 else 16
                for at in range(0, end, 1 if end < 1000 else 7):
                    changed = data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]
                    with self.subTest(link=i, at=at), contextlib.suppress(Refused):
                        self.assertEqual(packed.unpack(changed), contents)

    def test_another_base_is_refused(self):
        with tempfile.TemporaryDirectory() as name:
            for path in self.path(".").glob("raw-?.thalia"):
                shutil.copy(path, name)
            shutil.copy(self.path("zstd-0.thalia"), pathlib.Path(name, "raw-0.thalia"))
            with self.assertRaisesRegex(Refused, "base_checkpoint_hash|base_uuid"):
                Chain(pathlib.Path(name, "raw-2.thalia"))

    def test_every_flipped_byte_in_front_of_the_container_is_refused(self):
        data = self.path("raw-1.thalia").read_bytes()
        broken = self.path("broken.thalia")
        for at in (*range(160), *range(160, 4096, 61)):
            with self.subTest(at=at):
                broken.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
                with self.assertRaises(Refused):
                    Chain(broken)


if __name__ == "__main__":
    if digests.zstandard is None:
        if not shutil.which("zstd"):
            print("skipped: neither the Python package zstandard nor the program zstd is there")
            sys.exit(77)
        digests.DECODERS["zstd"] = decode_with_program
    unittest.main(argv=sys.argv[:1])
