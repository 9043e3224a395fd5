"""The witness reads what CheckpointCompressor saved, and refuses what is damaged.

Usage: mckp_test.py WITNESS_FILES
"""

import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import digests
import mckp

WITNESS_FILES = sys.argv[1]


def decode_frames(stored):
    """One zstd frame or several, with the package or else the program."""
    if digests.zstandard is not None:
        reader = digests.zstandard.ZstdDecompressor().stream_reader(io.BytesIO(stored), read_across_frames=True)
        return reader.read()
    done = subprocess.run(["zstd", "-dqc"], input=stored, capture_output=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.decode())
    return done.stdout


class Mckp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([WITNESS_FILES, "mckp", cls.folder.name], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def open(self, key):
        return mckp.File(pathlib.Path(self.folder.name, key).read_bytes(), decode_frames)

    def expected(self, key):
        folder = pathlib.Path(self.folder.name, f"{key}.expected")
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    def restored(self, key):
        file = self.open(key)
        previous = file.header["previous_key"]
        base = self.restored(previous) if previous else {}
        return {name: file.read(name, base.get(name)) for name in file.tensors}

    def test_known_answers_of_the_checksum(self):
        # Of the XXH64 specification's sanity checks, seed 0.
        self.assertEqual(mckp.xxh64(b""), 0xEF46DB3751D8E999)
        self.assertEqual(mckp.xxh64(b"abc"), 0x44BC2CF5AD770999)

    def test_every_tensor_is_what_the_library_restores(self):
        for key in ("base", "next", "store", "small", "thin", "thinner", "wide", "products"):
            with self.subTest(key=key):
                found = self.restored(key)
                self.assertEqual(found, self.expected(key))
                file = self.open(key)
                content_hash = file.content_hash(found)
                if content_hash is not None:
                    self.assertEqual(content_hash, file.header["content_hash"])

    def test_the_samples_use_what_they_should(self):
        self.assertEqual(self.open("next").header["previous_key"], "base")
        self.assertEqual(
            self.open("next").header["previous_checkpoint_hash"],
            self.open("base").header["content_hash"],
        )
        self.assertEqual(self.open("store").header["content_digests"], "sha256")
        self.assertEqual(self.open("base").header["content_digests"], "xxh3_128")
        self.assertTrue(self.open("next").flags & 1)
        self.assertTrue(self.open("base").flags & 2)
        self.assertTrue(self.open("small").flags & 4)
        thin, thinner = self.open("thin"), self.open("thinner")
        self.assertEqual(thin.flags, 2 | 8)
        self.assertEqual(thinner.flags, 1 | 2 | 8)
        self.assertEqual(thin.tensors["csr"]["sparse"]["encoding"], "csr")
        self.assertEqual(thin.tensors["coo"]["sparse"]["index_bits"], 32)
        self.assertEqual(thin.tensors["wide"]["sparse"]["index_bits"], 64)
        self.assertTrue(thinner.tensors["csr"]["method"] & mckp.DELTA)
        products = self.open("products")
        self.assertEqual(products.flags, 1 | 16)
        self.assertEqual({entry["method"] for entry in products.tensors.values()}, {mckp.DELTA | mckp.LOW_RANK})
        self.assertEqual(products.header["metadata"]["lossy_generation"], 1)

    def test_every_flipped_byte_is_refused(self):
        data = pathlib.Path(self.folder.name, "next").read_bytes()
        for at in range(0, len(data), max(1, len(data) // 200)):
            with self.subTest(at=at), self.assertRaises(mckp.RefusedError):
                mckp.File(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :], decode_frames)


if __name__ == "__main__":
    if digests.zstandard is None and not shutil.which("zstd"):
        print("skipped: neither the Python package zstandard nor the program zstd is there")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
