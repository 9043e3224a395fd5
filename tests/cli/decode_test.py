"""What cat shows of every code of every small dtype, against ml_dtypes and NumPy.

decode_test.py THALIA MAKE_FILES
"""

import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import ml_dtypes
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

THALIA, MAKE_FILES = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])

# Ours, theirs, and bits of a code.
FLOATS = {
    "f16": (np.float16, 16),
    "bf16": (ml_dtypes.bfloat16, 16),
    "f8_e4m3": (ml_dtypes.float8_e4m3fn, 8),
    "f8_e5m2": (ml_dtypes.float8_e5m2, 8),
    "f8_e8m0": (ml_dtypes.float8_e8m0fnu, 8),
    "f8_e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, 8),
    "f8_e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, 8),
    "f6_e2m3": (ml_dtypes.float6_e2m3fn, 6),
    "f6_e3m2": (ml_dtypes.float6_e3m2fn, 6),
    "f4_e2m1": (ml_dtypes.float4_e2m1fn, 4),
}
INTEGERS = {
    "i8": np.arange(256, dtype=np.uint8).view(np.int8),
    "u8": np.arange(256, dtype=np.uint8),
    "i16": np.arange(1 << 16, dtype=np.uint16).view(np.int16),
    "u16": np.arange(1 << 16, dtype=np.uint16),
    "i4": np.array([*range(8), *range(-8, 0)], np.int8),
    "u4": np.arange(16, dtype=np.uint8),
    "i2": np.array([0, 1, -2, -1], np.int8),
    "u2": np.arange(4, dtype=np.uint8),
    "ternary": np.array([0, 1], np.int8),
    "binary": np.array([-1, 1], np.int8),
    "bool": np.array([False, True]),
}


def codes_as(dtype, bits):
    container = np.uint16 if bits > 8 else np.uint8
    return np.arange(1 << bits).astype(container).view(dtype).astype(np.float32)


class Decoding(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([MAKE_FILES, cls.folder.name], check=True)

    def cat(self, *arguments):
        file = f"{self.folder.name}/codes.thalia"
        command = [THALIA, "cat", file, *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def npy(self, name):
        return np.load(io.BytesIO(self.cat(name, "--format", "npy")))

    def test_npy_of_floating_point_codes(self):
        for name, (dtype, bits) in FLOATS.items():
            with self.subTest(name):
                got = self.npy(name)
                want = codes_as(dtype, bits)
                self.assertEqual(got.dtype, np.float16 if name == "f16" else np.float32)
                np.testing.assert_array_equal(got.astype(np.float32), want)
                numbers = ~np.isnan(want)
                np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])

    def test_npy_of_integer_codes(self):
        for name, want in INTEGERS.items():
            with self.subTest(name):
                got = self.npy(name)
                self.assertEqual(got.dtype, want.dtype)
                np.testing.assert_array_equal(got, want)

    def test_text_and_json_read_back(self):
        for name, (dtype, bits) in FLOATS.items():
            with self.subTest(name):
                want = codes_as(dtype, bits)
                values = json.loads(self.cat(name, "--format", "json"))["values"]
                numbers = np.array([float(v) for v in values], np.float32)
                np.testing.assert_array_equal(numbers, want)
                text = self.cat(name, "--all").decode().splitlines()[1]
                words = text.strip("[]").split()
                np.testing.assert_array_equal(np.array(words, np.float32), want)

    def test_npy_of_whole_types(self):
        np.testing.assert_array_equal(self.npy("c64"), np.array([1 - 2j, 0.5], np.complex64))
        np.testing.assert_array_equal(self.npy("c128"), np.complex128(0.1 + 1e300j))
        np.testing.assert_array_equal(self.npy("u64"), np.array([2**64 - 1], np.uint64))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
