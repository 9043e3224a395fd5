"""Arrays that NumPy saves, read by the library, and files of the library, loaded by NumPy.

usage: numpy_test.py NPZ_TOOL, the program of npz_tool.cc. Exits with 77 where NumPy is missing.
"""

import io
import itertools
import json
import math
import pickle
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile
from pathlib import Path

try:
    import ml_dtypes
    import numpy as np
    from numpy.lib import format as npy
except ImportError as missing:
    print(f"skipped: {missing}; tools/test installs what tests/requirements.txt names")
    sys.exit(77)

TOOL = sys.argv.pop(1)

# Our names of NumPy's types.
NAMES = {
    "f2": "f16", "f4": "f32", "f8": "f64", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64",
    "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64", "b1": "bool", "c8": "c64", "c16": "c128",
}  # fmt: skip
SHAPES = [(), (0,), (1,), (7,), (2, 3), (3, 0, 2), (65, 33), (2, 3, 4), (1, 5, 1), (2, 1, 3, 2, 2)]


def sample(dtype, shape, order="C"):
    """Different elements of any type."""
    count = math.prod(shape)
    size = np.dtype(dtype).itemsize
    raw = (np.arange(count * size, dtype=np.uint32) * 37 % 251).astype(np.uint8)
    if np.dtype(dtype) == np.bool_:
        raw &= 1
    flat = raw.view(dtype) if count else np.zeros(0, dtype)
    return np.array(flat.reshape(shape), order=order)


def run(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout.splitlines()


class NumpyTest(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.folder = Path(self.place.name)

    def dump(self, path):
        """{name: (dtype, shape, bytes)} of what the library reads."""
        out = self.folder / "dump"
        out.mkdir(exist_ok=True)
        lines = [json.loads(line) for line in run("dump", path, out)]
        return {
            line["name"]: (line["dtype"], tuple(line["shape"]), (out / str(i)).read_bytes())
            for i, line in enumerate(lines)
        }

    def expect(self, read, array, name):
        """That what was read is the array, in row-major order and of this machine's byte order."""
        dtype, shape, raw = read
        native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
        self.assertEqual((dtype, shape), (NAMES[array.dtype.str[1:]], array.shape), name)
        self.assertEqual(raw, native.tobytes(), name)

    def same_again(self, path, *codec):
        """That the library writes the same file, and names no losses."""
        again = self.folder / "again" / path.name
        again.parent.mkdir(exist_ok=True)
        self.assertEqual(run("rewrite", path, again, *codec), [])
        self.assertEqual(again.read_bytes(), path.read_bytes(), path)

    def arrays(self):
        """An array of each type, shape, order and byte order."""
        arrays = {}
        for code, shape, order in itertools.product(NAMES, SHAPES, "CF"):
            for byte_order in "<>" if np.dtype(code).itemsize > 1 else "|":
                array = sample(byte_order + code, shape, order)
                arrays[f"{byte_order}{code}/{order}/{'x'.join(map(str, shape))}"] = array
        return arrays

    def test_each_type_shape_and_order_is_read_and_written_again(self):
        arrays = self.arrays()
        self.assertGreater(len(arrays), 400)
        for save, name in ((np.savez, "stored.npz"), (np.savez_compressed, "deflated.npz")):
            path = self.folder / name
            save(path, **arrays)
            read = self.dump(path)
            self.assertEqual(list(read), list(arrays))
            for key, array in arrays.items():
                self.expect(read[key], array, key)
            self.same_again(path)

    def test_each_type_shape_and_order_is_read_of_npy_files(self):
        path = self.folder / "an array.npy"
        arrays = list(self.arrays().items())[::7]
        self.assertGreater(len(arrays), 50)
        for key, array in arrays:
            np.save(path, array)
            self.expect(self.dump(path)["an array"], array, key)
            self.same_again(path)

    def test_numpy_loads_what_is_written_anew(self):
        arrays = self.arrays()
        source = self.folder / "a.npz"
        np.savez(source, **arrays)
        for codec in ("none", "zstd"):
            path = self.folder / f"{codec}.npz"
            self.assertEqual(run("rewrite", source, path, codec), [])
            with np.load(path) as loaded:
                self.assertEqual(loaded.files, list(arrays))
                for key, array in arrays.items():
                    self.assertEqual(loaded[key].dtype, array.dtype)
                    self.assertEqual(loaded[key].tobytes(), array.tobytes(), key)
            with zipfile.ZipFile(path) as archive:
                self.assertIsNone(archive.testzip())
                kind = zipfile.ZIP_STORED if codec == "none" else zipfile.ZIP_DEFLATED
                self.assertEqual({info.compress_type for info in archive.infolist()}, {kind})
        np.savez_compressed(self.folder / "numpy.npz", **arrays)
        expected = (self.folder / "numpy.npz").read_bytes()
        if self.python_has_strict_zip64():
            self.assertEqual((self.folder / "zstd.npz").read_bytes(), expected)

    @staticmethod
    def python_has_strict_zip64():
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as out, out.open("a", "w", force_zip64=True):
            pass
        return archive.getvalue()[4] == 45

    def test_headers_of_each_version_are_read_and_written_again(self):
        array = sample("<f4", (3, 5))
        for version in ((1, 0), (2, 0), (3, 0)):
            path = self.folder / "a.npy"
            with path.open("wb") as out, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                npy.write_array(out, array, version=version)
            self.expect(self.dump(path)["a"], array, version)
            self.same_again(path)

    def test_headers_with_other_padding_are_written_again(self):
        array = sample("<f4", (3, 5))
        text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }"
        for length in (70, 86, 118, 500, 9_999):
            header = text.ljust(length - 1) + "\n"
            path = self.folder / "a.npy"
            path.write_bytes(npy.magic(1, 0) + len(header).to_bytes(2, "little") + header.encode() + array.tobytes())
            self.assertEqual(np.load(path).tobytes(), array.tobytes())
            self.expect(self.dump(path)["a"], array, length)
            self.same_again(path)

    def test_types_that_numpy_lacks_go_there_and_back(self):
        path = self.folder / "a.npz"
        numbers = np.linspace(-3, 3, 24).reshape(4, 6)
        arrays = {
            "bf16": numbers.astype(ml_dtypes.bfloat16),
            "e4m3": numbers.astype(ml_dtypes.float8_e4m3fn),
            "e5m2": numbers.astype(ml_dtypes.float8_e5m2),
            "void": np.asfortranarray(np.arange(24, dtype="<u8").view("V8").reshape(4, 6)),
        }
        np.savez(path, **arrays)
        read = self.dump(path)
        self.assertEqual(read["bf16"], ("bf16", (4, 6), arrays["bf16"].tobytes()))
        self.assertEqual(read["e5m2"], ("f8_e5m2", (4, 6), arrays["e5m2"].tobytes()))
        self.assertEqual(read["e4m3"], ("u8", (4, 6), arrays["e4m3"].tobytes()))
        self.assertEqual(read["void"], ("u8", (4, 6, 8), arrays["void"].tobytes()))
        self.same_again(path)
        with np.load(path) as loaded:
            again = loaded["bf16"].view(ml_dtypes.bfloat16)
            self.assertTrue((again == arrays["bf16"]).all())

    def test_what_holds_no_plain_elements_is_refused_by_name(self):
        arrays = {
            "objects": (np.array([{}, None], dtype=object), "Python objects, a pickle"),
            "text": (np.array(["a", "bc"]), "texts"),
            "bytes": (np.array([b"a", b"bc"]), "texts"),
            "dates": (np.array(["2020-01-01"], dtype="M8[D]"), "dates"),
            "records": (np.zeros(3, dtype=[("a", "<f4"), ("b", "<i8")]), "records"),
            "long": (np.zeros(3, dtype=np.longdouble), "unknown element type"),
            "deep": (np.zeros((1,) * 9), "too many dimensions"),
        }
        for name, (array, why) in arrays.items():
            path = self.folder / f"{name}.npy"
            np.save(path, array, allow_pickle=True)
            archive = self.folder / f"{name}.npz"
            np.savez(archive, **{name: array})
            lines = run("judge", path, archive)
            self.assertEqual(len(lines), 2)
            for line in lines:
                self.assertTrue(line.startswith("refused: "), line)
                self.assertIn(why, line)
                self.assertIn(name, line)

    def test_members_that_are_no_arrays_are_passed_over(self):
        path = self.folder / "a.npz"
        np.savez(path, w=np.arange(3))
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("notes.txt", "of somebody")
            archive.writestr("pickle.pkl", pickle.dumps([1]))
        self.assertEqual(list(self.dump(path)), ["w"])

    def test_names_are_those_of_numpy(self):
        path = self.folder / "a.npz"
        arrays = {name: np.arange(3) for name in ("w", "a/b", "ü", "", "x.npy", "arr_0", " ", "'")}
        np.savez(path, **arrays)
        with np.load(path) as loaded:
            self.assertEqual(list(self.dump(path)), loaded.files)
        self.same_again(path)

    def test_a_member_without_the_suffix_is_an_array_too(self):
        path = self.folder / "a.npz"
        array = io.BytesIO()
        np.save(array, np.arange(3))
        with zipfile.ZipFile(path, "w") as archive, archive.open("w", "w", force_zip64=True) as out:
            out.write(array.getvalue())
        with np.load(path) as loaded:
            self.assertEqual(loaded["w"].tolist(), [0, 1, 2])
        self.assertEqual(list(self.dump(path)), ["w"])
        self.same_again(path)

    def test_archives_written_to_a_pipe_are_read(self):
        class Pipe(io.RawIOBase):
            def __init__(self):
                self.bytes = bytearray()

            def writable(self):
                return True

            def write(self, piece):
                self.bytes += piece
                return len(piece)

        arrays = {"a": sample("<f4", (3, 5)), "b": sample(">i2", (4, 3), "F")}
        for save in (np.savez, np.savez_compressed):
            pipe = Pipe()
            save(pipe, **arrays)
            path = self.folder / "a.npz"
            path.write_bytes(pipe.bytes)
            read = self.dump(path)
            for name, array in arrays.items():
                self.expect(read[name], array, name)

    def test_an_npy_file_becomes_an_npz_file_and_back(self):
        array = sample(">f8", (3, 4), "F")
        np.save(self.folder / "a.npy", array)
        self.assertEqual(run("rewrite", self.folder / "a.npy", self.folder / "b.npz"), [])
        with np.load(self.folder / "b.npz") as loaded:
            self.assertEqual(loaded["a"].tobytes("F"), array.tobytes("F"))
            self.assertTrue(loaded["a"].flags.f_contiguous)
        losses = run("rewrite", self.folder / "b.npz", self.folder / "c.npy")
        self.assertEqual(losses, ["the tensor's name: 'a'"])
        self.assertEqual((self.folder / "c.npy").read_bytes(), (self.folder / "a.npy").read_bytes())

    def test_files_of_several_arrays_are_refused(self):
        path = self.folder / "a.npy"
        with path.open("wb") as out:
            np.save(out, np.arange(3))
            np.save(out, np.arange(3))
        self.assertIn("shape", run("judge", path)[0])


if __name__ == "__main__":
    unittest.main()
