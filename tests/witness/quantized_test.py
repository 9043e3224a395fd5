"""The witness restores quantized tensors to the elements that the library restores.

Usage: quantized_test.py WRITE_QUANTIZED
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from checkpoint import Checkpoint

WRITE_QUANTIZED = sys.argv[1]


class Restored(unittest.TestCase):
    def test_every_element_is_the_librarys(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            subprocess.run([WRITE_QUANTIZED, name], check=True)
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
