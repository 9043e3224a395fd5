"""Models of several files, other writers' headers, edits and slices, against the package safetensors.

usage: model_reference_test.py TOOL, the program of model_tool.cc. Exits with 77 where the package is missing.
The index and the split into shards are held against what transformers and huggingface_hub write, in the few
lines of Python that say it.
"""

import json
import random
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
except ImportError as missing:
    print(f"skipped: {missing}; tools/test installs what tests/requirements.txt names")
    sys.exit(77)

TOOL = Path(sys.argv[1])
INDEX = "model.safetensors.index.json"
DTYPES = {"U8": "u1", "I16": "i2", "F16": "f2", "F32": "f4", "F64": "f8", "I64": "i8", "BOOL": "?"}


def run(*arguments):
    return subprocess.run([TOOL, *map(str, arguments)], check=True, stdout=subprocess.PIPE).stdout


def random_tensors(chance, count):
    tensors = {}
    for i in range(count):
        dtype = chance.choice(list(DTYPES.values()))
        shape = [chance.choice([0, 1, 2, 3, 5]) for _ in range(chance.randint(0, 4))]
        size = int(numpy.prod(shape, dtype=numpy.int64))
        values = numpy.array([chance.randint(0, 1 if dtype == "?" else 100) for _ in range(size)])
        tensors[f"layer{chance.randrange(10**6)}.{i}.é"] = values.astype(dtype).reshape(shape)
    return tensors


def split(tensors, most):
    """The names of each shard, as huggingface_hub splits a state."""
    shards, current, filled = [], [], 0
    for name, tensor in tensors:
        if tensor.nbytes > most:
            shards.append([name])
            continue
        if filled + tensor.nbytes > most:
            shards.append(current)
            current, filled = [], 0
        current.append(name)
        filled += tensor.nbytes
    return [*shards, current] if current else shards


def index_of(shards, tensors):
    names = [f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors" for i in range(len(shards))]
    weights = {name: file for file, shard in zip(names, shards, strict=True) for name in shard}
    total = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weights}
    return names, json.dumps(index, indent=2, sort_keys=True) + "\n"


def written_as_others_do(chance, tensors, metadata):
    """A file with the same content as any conforming writer may lay it out."""
    order = list(tensors)
    chance.shuffle(order)
    header, data = {}, b""
    for name in order:
        array = tensors[name]
        dtype = next(key for key, value in DTYPES.items() if numpy.dtype(value) == array.dtype)
        fields = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        header[name] = dict(chance.sample(list(fields.items()), 3))
        data += array.tobytes()
    if metadata is not None:
        header["__metadata__"] = metadata
    header = dict(chance.sample(list(header.items()), len(header)))
    text = json.dumps(
        header,
        indent=chance.choice([None, None, 1]),
        ensure_ascii=chance.random() < 0.5,
        separators=chance.choice([(",", ":"), (", ", ": "), (" ,", " : ")]),
    ).encode()
    text += b" " * chance.choice([0, 1, 7, 64, 1000])
    return struct.pack("<Q", len(text)) + text + data


class Models(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def contents(self, folder):
        return {path.name: path.read_bytes() for path in (self.folder / folder).iterdir()}

    def same(self, one, other):
        self.assertEqual(one.keys(), other.keys())
        for name, array in one.items():
            self.assertEqual(array.dtype, other[name].dtype)
            self.assertEqual(array.shape, other[name].shape)
            self.assertEqual(array.tobytes(), other[name].tobytes())

    def test_models_of_hugging_face_come_back_byte_for_byte(self):
        chance = random.Random(1)
        for i in range(15):
            tensors = random_tensors(chance, chance.randint(2, 20))
            shards = split(tensors.items(), chance.choice([50, 100, 300]))
            names, index = index_of(shards, tensors)
            source = self.folder / f"source{i}"
            source.mkdir()
            for file, shard in zip(names, shards, strict=True):
                save_file({name: tensors[name] for name in shard}, source / file, metadata={"format": "pt"})
            (source / INDEX).write_text(index)
            self.assertEqual(run("judge", source), b"good\n")
            target = self.folder / f"target{i}"
            target.mkdir()
            run("copy", source, target)
            self.assertEqual(self.contents(source), self.contents(target))

    def test_shards_are_those_of_hugging_face(self):
        chance = random.Random(2)
        for i in range(25):
            tensors = random_tensors(chance, chance.randint(2, 25))
            original = self.folder / "original.safetensors"
            save_file(tensors, original, metadata={"format": "pt"})
            most = chance.choice([8, 20, 50, 200, 10_000])
            target = self.folder / f"model{i}"
            run("copy", original, target, most)
            with safe_open(original, "numpy") as file:
                in_order = [(name, tensors[name]) for name in file.offset_keys()]
            shards = split(in_order, most)
            if len(shards) == 1:
                self.assertEqual([*self.contents(f"model{i}")], ["model.safetensors"])
                self.same(load_file(target / "model.safetensors"), tensors)
                continue
            names, index = index_of(shards, tensors)
            self.assertEqual((target / INDEX).read_text(), index)
            self.assertEqual(sorted(self.contents(f"model{i}")), sorted([*names, INDEX]))
            for file, shard in zip(names, shards, strict=True):
                self.same(load_file(target / file), {name: tensors[name] for name in shard})
                save_file({name: tensors[name] for name in shard}, self.folder / "shard", metadata={"format": "pt"})
                self.assertEqual((target / file).read_bytes(), (self.folder / "shard").read_bytes())

    def test_files_of_other_writers_come_back_byte_for_byte(self):
        chance = random.Random(3)
        for _ in range(40):
            tensors = random_tensors(chance, chance.randint(0, 8))
            metadata = chance.choice([None, {}, {"k": "v", "é\n": "\u2028"}])
            original, back = self.folder / "a.safetensors", self.folder / "b.safetensors"
            original.write_bytes(written_as_others_do(chance, tensors, metadata))
            self.same(load_file(original), tensors)
            run("copy", original, back)
            self.assertEqual(back.read_bytes(), original.read_bytes())

    def test_edited_files_are_read_by_the_reference(self):
        chance = random.Random(4)
        seen = set()
        for _ in range(60):
            tensors = random_tensors(chance, chance.randint(0, 5))
            metadata = chance.choice([None, {}, {"k": "x" * chance.randint(0, 50), "l": "m"}])
            path = self.folder / "a.safetensors"
            path.write_bytes(written_as_others_do(chance, tensors, metadata))
            for text in ("x" * chance.randint(0, 60), "é\\", "y" * chance.randint(0, 60)):
                seen.add(run("edit", path, "k", text).decode().strip())
                with safe_open(path, "numpy") as file:
                    self.assertEqual(file.metadata(), {**(metadata or {}), "k": text})
                self.same(load_file(path), tensors)
        self.assertIn("rewritten", seen)
        self.assertTrue(seen & {"cloned", "in_place"})

    def test_slices_are_those_of_the_reference(self):
        chance = random.Random(5)
        tensors = {
            "a": numpy.arange(4 * 5 * 6, dtype="i8").reshape(4, 5, 6),
            "b": numpy.arange(7, dtype="f2"),
            "c": numpy.arange(30, dtype="u1").reshape(5, 6),
        }
        path = self.folder / "a.safetensors"
        save_file(tensors, path)
        with safe_open(path, "numpy") as file:
            for _ in range(60):
                name = chance.choice("abc")
                ranges = [sorted(chance.choices(range(extent + 1), k=2)) for extent in tensors[name].shape]
                if any(begin == end for begin, end in ranges):
                    continue
                expected = file.get_slice(name)[tuple(slice(*one) for one in ranges)]
                bounds = [bound for one in ranges for bound in one]
                self.assertEqual(run("slice", path, name, *bounds), expected.tobytes())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
