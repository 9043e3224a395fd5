"""The witness restores quantized tensors to the elements that the library restores.

Usage: quantized_test.py WITNESS_FILES
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from chain import Chain

from checkpoint import Checkpoint

WITNESS_FILES = sys.argv[1]


class Restored(unittest.TestCase):
    def test_every_element_is_the_librarys(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            subprocess.run([WITNESS_FILES, "quantized", name], check=True)
            files = sorted(folder.glob("*.thalia"))
            self.assertEqual(len(files), 5)
            for path in files:
                tensors = Checkpoint(path.read_bytes()).tensors
                self.assertEqual(len(tensors), 6)
                for tensor in tensors:
                    with self.subTest(file=path.name, tensor=tensor.name):
                        self.assertEqual(tensor.encoding, "quantized")
                        expected = path.with_suffix("." + tensor.name).read_bytes()
                        self.assertEqual(bytes(tensor.restored), expected)

    def test_changes_of_low_rank_make_the_librarys_elements(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            subprocess.run([WITNESS_FILES, "low_rank", name], check=True)
            chain = Chain(folder / "2.delta")
            self.assertEqual(len(chain.links), 3)
            found = {key[1]: data for key, data in chain.tensors()}
            self.assertEqual(set(found), {"f32", "f64", "f16", "bf16"})
            for dtype, data in found.items():
                with self.subTest(dtype=dtype):
                    tensors = chain.links[0].file.tensors
                    tensor = next(t for t in tensors if t.name == dtype)
                    self.assertEqual(tensor.encoding, "low_rank_delta")
                    self.assertEqual(data, (folder / f"2.{dtype}").read_bytes())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
