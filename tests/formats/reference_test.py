"""The library against the reference implementation, the package safetensors.

usage: reference_test.py TOOL CORPUS, the program of reference_tool.cc and a folder of files to
mutate. Exits with 77 where the package is missing.
"""

import random
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy
    from safetensors import SafetensorError, TensorSpec, deserialize, serialize
except ImportError as missing:
    print(f"skipped: {missing}; tools/test installs what tests/requirements.txt names")
    sys.exit(77)

TOOL = Path(sys.argv[1])
CORPUS = Path(sys.argv[2])

# The names that the reference takes, and the bytes of an element (of two for F4).
ELEMENT_BYTES = {
    "bool": 1,
    "float4_e2m1fn_x2": 1,
    "uint8": 1,
    "int8": 1,
    "float8_e5m2": 1,
    "float8_e4m3fn": 1,
    "float8_e8m0fnu": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "int16": 2,
    "uint16": 2,
    "float16": 2,
    "bfloat16": 2,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "complex64": 8,
    "float64": 8,
    "int64": 8,
    "uint64": 8,
}
CHARACTERS = [
    "\x00",
    "\n",
    "\x1b",
    " ",
    '"',
    "\\",
    "/",
    ".",
    "0",
    "7",
    "a",
    "Z",
    "_",
    "\x7f",
    "é",
    "ß",
    "\u2028",
    "漢",
    "\ufffd",
    "😀",
]


def random_text(chance, longest):
    return "".join(chance.choices(CHARACTERS, k=chance.randint(0, longest)))


def random_file(chance, metadata_keys=1):
    """The bytes of a file that the reference writes, in an order left to chance beyond one key."""
    buffers = []
    tensors = {}
    for _ in range(chance.randint(1, 30)):
        dtype = chance.choice(list(ELEMENT_BYTES))
        rank = chance.randint(1 if "float4" in dtype else 0, 8)
        shape = [chance.choice([0, 1, 1, 2, 3]) for _ in range(rank)]
        size = int(numpy.prod(shape, dtype=numpy.int64)) * ELEMENT_BYTES[dtype]
        elements = numpy.frombuffer(chance.randbytes(size), dtype=numpy.uint8)
        # Of bools that are neither true nor false no .thalia file can be made.
        buffers.append(elements & 1 if dtype == "bool" else elements)
        tensors[random_text(chance, 12)] = TensorSpec(
            dtype=dtype, shape=shape, data_ptr=buffers[-1].ctypes.data, data_len=size
        )
    some = {random_text(chance, 5): random_text(chance, 20) for _ in range(metadata_keys)}
    metadata = chance.choice([None, {}, some])
    return bytes(serialize(tensors, metadata=metadata))


def mutated(chance, content):
    """A file with a few changes, most of them in the header."""
    changed = bytearray(content)
    header_end = min(len(changed), 8 + struct.unpack("<Q", content[:8])[0])
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(8 if chance.random() < 0.9 else 0, max(9, header_end))
        kind = chance.randrange(4)
        if at >= len(changed):
            changed.append(chance.randrange(256))
        elif kind == 0:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            changed[at] = chance.choice(b'0123456789{}[],:" -.\\abcU')
        elif kind == 2:
            del changed[at]
        else:
            changed.insert(at, chance.choice(b'0123456789{}[],:" '))
    if chance.random() < 0.7 and len(changed) >= 8:
        changed[:8] = struct.pack("<Q", max(0, header_end - 8 + len(changed) - len(content)))
    return bytes(changed)


def accepted_by_reference(content):
    try:
        deserialize(content)
        return True
    except SafetensorError:
        return False


class Reference(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def rewritten(self, content):
        original, middle, back = (self.folder / name for name in ("a.safetensors", "b.thalia", "c.safetensors"))
        original.write_bytes(content)
        subprocess.run([TOOL, "rewrite", original, middle, back], check=True)
        return back.read_bytes()

    def judge(self, contents):
        """What the library says of each, in order."""
        paths = []
        for i, content in enumerate(contents):
            paths.append(self.folder / str(i))
            paths[-1].write_bytes(content)
        output = subprocess.run([TOOL, "judge", *paths], check=True, stdout=subprocess.PIPE).stdout
        # Not splitlines(): a message may quote characters that count as line ends there.
        return output.decode().rstrip("\n").split("\n")

    def test_files_of_the_reference_come_back_byte_for_byte(self):
        chance = random.Random(1)
        for i in range(60):
            content = random_file(chance, metadata_keys=9)
            with self.subTest(i=i):
                self.assertEqual(self.rewritten(content), content)

    def test_a_header_of_another_writer_comes_back(self):
        header = (
            b'{"b":{"dtype":"F32","shape":[],"data_offsets":[2,6]},"__metadata__":{"k":"v"},'
            b'"a":{"dtype":"F6_E2M3","shape":[0,4],"data_offsets":[0,0]},'
            b'"c":{"dtype":"F4","shape":[2,2],"data_offsets":[0,2]}}'
        )
        content = struct.pack("<Q", len(header)) + header + b"123456"
        self.assertEqual(len(deserialize(content)), 3)
        self.assertEqual(self.rewritten(content), content)

    def test_what_the_reference_refuses_is_refused(self):
        chance = random.Random(2)
        seeds = [path.read_bytes() for path in sorted(CORPUS.iterdir())]
        seeds = [seed for seed in seeds if len(seed) >= 8] + [random_file(chance) for _ in range(20)]
        contents = [mutated(chance, chance.choice(seeds)) for _ in range(3000)]
        accepted = 0
        for content, verdict in zip(contents, self.judge(contents), strict=True):
            if verdict == "good":
                accepted += 1
                self.assertTrue(accepted_by_reference(content), content)
        self.assertGreater(accepted, 30)

    def test_only_known_leniences_of_the_reference_are_refused(self):
        """The library is stricter in these ways alone."""
        known = (
            "the name is there twice",
            "the key is there twice",
            "unknown field",
            "the header does not start with '{'",
            "too many dimensions",
        )
        chance = random.Random(3)
        seeds = [random_file(chance) for _ in range(20)]
        contents = [mutated(chance, chance.choice(seeds)) for _ in range(3000)]
        for content, verdict in zip(contents, self.judge(contents), strict=True):
            if verdict != "good" and accepted_by_reference(content):
                self.assertIn(verdict.removeprefix("refused: "), known, content)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
