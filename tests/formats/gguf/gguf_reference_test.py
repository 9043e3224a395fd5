"""The library against ggml's reference in Python, the package gguf.

usage: gguf_reference_test.py TOOL CORPUS, the program of gguf_tool.cc and a folder of files to
mutate. Exits with 77 where the package is missing. Where THALIA_VECTORS names the folder of the
trained model, that is quantized, too.
"""

import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy as np
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quants
except ImportError as missing:
    print(f"skipped: {missing}; tools/test installs what tests/requirements.txt names")
    sys.exit(77)

TOOL = Path(sys.argv[1])
CORPUS = Path(sys.argv[2])

# Types of blocks that the package restores, and where the halves of a block stand that scale it.
HALVES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
    "TQ1_0": [52],
    "TQ2_0": [64],
    "MXFP4": [],
    "NVFP4": [],
}
# Types that the package makes of numbers.
QUANTIZED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"]
# Its blocks of this type have another size than ggml's C code gives them.
OTHER_SIZES = {"Q8_1"}
# Zeros, the ends of the subnormals and of the numbers, infinities, NaNs quiet and not.
EDGES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFD55]
INTEGERS = {
    GGUFValueType.UINT8: (0, 2**8),
    GGUFValueType.INT8: (-(2**7), 2**7),
    GGUFValueType.UINT16: (0, 2**16),
    GGUFValueType.INT16: (-(2**15), 2**15),
    GGUFValueType.UINT32: (0, 2**32),
    GGUFValueType.INT32: (-(2**31), 2**31),
    GGUFValueType.UINT64: (0, 2**64),
    GGUFValueType.INT64: (-(2**63), 2**63),
}
SCALARS = [*INTEGERS, GGUFValueType.FLOAT32, GGUFValueType.FLOAT64, GGUFValueType.BOOL, GGUFValueType.STRING]
ELEMENTS = ["float32", "float16", "float64", "int8", "int16", "int32", "int64"]


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def random_value(chance, type_of):
    if type_of in INTEGERS:
        least, end = INTEGERS[type_of]
        return chance.choice([least, end - 1, chance.randrange(least, end)])
    if type_of == GGUFValueType.BOOL:
        return chance.random() < 0.5
    if type_of == GGUFValueType.STRING:
        return chance.choice([b"", b"\xff\x00\x80", chance.randbytes(5), "grüß".encode(), b'"\\\n\x1f'])
    wide = np.float64 if type_of == GGUFValueType.FLOAT64 else np.float32
    number = float(np.frombuffer(chance.randbytes(np.dtype(wide).itemsize), dtype=wide)[0])
    return chance.choice([number, 0.1, -0.0, float("inf"), float("nan"), 5e-324 if wide is np.float64 else 1e-45])


def random_blocks(generator, name, shape):
    """Random bytes; of every second block the scales are edges."""
    block = GGML_QUANT_SIZES[GGMLQuantizationType[name]][1]
    data = generator.integers(0, 256, size=(*shape, block), dtype=np.uint8)
    flat = data.reshape(-1, block)
    for at in HALVES.get(name, []):
        chosen = generator.choice(np.array(EDGES, dtype=np.uint16), size=flat[::2].shape[0])
        flat[::2, at : at + 2] = chosen.view(np.uint8).reshape(-1, 2)
    return data.reshape(*shape[:-1], -1)


def add_random_tensor(writer, chance, generator, i):
    if chance.random() < 0.5:
        shape = [chance.randrange(4) for _ in range(chance.randrange(5))]
        dtype = np.dtype(chance.choice(ELEMENTS))
        data = np.frombuffer(chance.randbytes(int(np.prod(shape, dtype=int)) * dtype.itemsize), dtype=np.uint8)
        writer.add_tensor(f"t.{i}", data.view(dtype).reshape(shape))
        return
    name = chance.choice([t.name for t in GGMLQuantizationType if t.name not in OTHER_SIZES])
    if GGML_QUANT_SIZES[GGMLQuantizationType[name]][0] > 1:
        shape = [chance.randrange(1, 4) for _ in range(chance.randrange(1, 4))]
        writer.add_tensor(f"t.{i}.{name}", random_blocks(generator, name, shape), raw_dtype=GGMLQuantizationType[name])


def write_random_file(path, seed):
    chance = random.Random(seed)
    generator = np.random.default_rng(seed)
    writer = GGUFWriter(path, chance.choice(["llama", "ü"]))
    if chance.random() < 0.5:
        writer.add_custom_alignment(chance.choice([1, 8, 64, 4096]))
    for i in range(chance.randrange(12)):
        type_of = chance.choice(SCALARS)
        if chance.random() < 0.5:
            writer.add_key_value(f"k.{i}.ä", random_value(chance, type_of), type_of)
        else:
            values = [random_value(chance, type_of) for _ in range(chance.randrange(1, 40))]
            writer.add_key_value(f"k.{i}", values, GGUFValueType.ARRAY, type_of)
    for i in range(chance.randrange(12)):
        add_random_tensor(writer, chance, generator, i)
    finish(writer)


def values_of(reader):
    """The bytes of each key/value; the counts before them are fields of the reader, too."""
    return {
        key: [bytes(part) for part in field.parts]
        for key, field in reader.fields.items()
        if not key.startswith("GGUF.")
    }


def accepted_by_reference(path):
    try:
        GGUFReader(path)
        return True
    except Exception:
        return False


class Reference(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def tool(self, *arguments):
        return subprocess.run([TOOL, *arguments], check=True, stdout=subprocess.PIPE).stdout

    def check_numbers(self, path, name, expected):
        """Equal bits, and NaNs where there are NaNs. Whether the bits in these are equal, too."""
        self.tool("dequantize", path, name, self.folder / "out")
        found = np.fromfile(self.folder / "out", dtype=np.uint32)
        wanted = np.ascontiguousarray(expected, dtype=np.float32).reshape(-1).view(np.uint32)
        self.assertEqual(found.size, wanted.size)
        nan = np.isnan(wanted.view(np.float32))
        self.assertTrue((np.isnan(found.view(np.float32)) == nan).all(), name)
        different = np.flatnonzero((found != wanted) & ~nan)
        self.assertEqual(different.size, 0, f"{name}: element {different[:5]}")
        return bool((found[nan] == wanted[nan]).all())

    def test_blocks_are_restored_bit_for_bit(self):
        generator = np.random.default_rng(1)
        writer = GGUFWriter(self.folder / "blocks.gguf", "test")
        expected = {}
        with np.errstate(all="ignore"):
            for name in HALVES:
                data = random_blocks(generator, name, (16, 400))
                writer.add_tensor(name, data, raw_dtype=GGMLQuantizationType[name])
                expected[name] = quants.dequantize(data, GGMLQuantizationType[name])
        finish(writer)
        for name, numbers in expected.items():
            with self.subTest(name=name):
                if not self.check_numbers(self.folder / "blocks.gguf", name, numbers):
                    print(f"{name}: other bits in a NaN")

    def test_every_scale_is_restored_bit_for_bit(self):
        """All 65,536 halves, each before the same codes."""
        halves = np.arange(65536, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
        codes = np.random.default_rng(2).integers(0, 256, size=32, dtype=np.uint8)
        data = np.concatenate([halves, np.tile(codes, (65536, 1))], axis=1)
        with np.errstate(all="ignore"):
            expected = quants.dequantize(data, GGMLQuantizationType.Q8_0)
        writer = GGUFWriter(self.folder / "halves.gguf", "test")
        writer.add_tensor("Q8_0", data, raw_dtype=GGMLQuantizationType.Q8_0)
        finish(writer)
        self.check_numbers(self.folder / "halves.gguf", "Q8_0", expected)

    def test_every_scale_of_fp4_is_restored_bit_for_bit(self):
        """All bytes of E8M0 and E4M3, each before all codes."""
        every = np.arange(256, dtype=np.uint8).reshape(-1, 1)
        pairs = np.array([low | (15 - low) << 4 for low in range(16)], dtype=np.uint8)
        writer = GGUFWriter(self.folder / "fp4.gguf", "test")
        expected = {}
        for name, scales, codes in (("MXFP4", 1, 1), ("NVFP4", 4, 2)):
            data = np.concatenate([np.tile(every, (1, scales)), np.tile(pairs, (256, codes))], axis=1)
            writer.add_tensor(name, data, raw_dtype=GGMLQuantizationType[name])
            expected[name] = quants.dequantize(data, GGMLQuantizationType[name])
        finish(writer)
        for name, numbers in expected.items():
            self.check_numbers(self.folder / "fp4.gguf", name, numbers)

    def test_files_of_the_reference_come_back_byte_for_byte(self):
        for seed in range(60):
            path = self.folder / "in.gguf"
            write_random_file(path, seed)
            with self.subTest(seed=seed):
                for command in ("rewrite", "carry"):
                    self.tool(command, path, self.folder / "out.gguf")
                    self.assertEqual((self.folder / "out.gguf").read_bytes(), path.read_bytes(), command)

    def test_the_reference_reads_what_the_library_writes(self):
        path = self.folder / "in.gguf"
        writer = GGUFWriter(path, "test")
        generator = np.random.default_rng(3)
        for name in HALVES:
            data = random_blocks(generator, name, (3, 512 // GGML_QUANT_SIZES[GGMLQuantizationType[name]][0]))
            writer.add_tensor(name, data, raw_dtype=GGMLQuantizationType[name])
        writer.add_array("list", ["a", "b"])
        finish(writer)
        before = GGUFReader(path)
        self.tool("rewrite", path, self.folder / "out.gguf")
        after = GGUFReader(self.folder / "out.gguf")
        self.assertEqual(values_of(after), values_of(before))
        for ours, theirs in zip(after.tensors, before.tensors, strict=True):
            self.assertEqual((ours.name, ours.tensor_type), (theirs.name, theirs.tensor_type))
            self.assertEqual(bytes(ours.data), bytes(theirs.data))
        # With numbers in place of blocks.
        self.tool("numbers", path, self.folder / "numbers.gguf")
        numbers = GGUFReader(self.folder / "numbers.gguf")
        self.assertEqual(values_of(numbers), values_of(before))
        for ours, theirs in zip(numbers.tensors, before.tensors, strict=True):
            with np.errstate(all="ignore"):
                expected = quants.dequantize(theirs.data, theirs.tensor_type)
            self.assertEqual(ours.tensor_type, GGMLQuantizationType.F32)
            np.testing.assert_array_equal(ours.data, expected)

    def test_only_what_the_reference_reads_is_read(self):
        """The reference checks little: what it refuses, the library refuses."""
        chance = random.Random(4)
        seeds = []
        for seed in range(20):
            write_random_file(self.folder / "in.gguf", seed)
            seeds.append((self.folder / "in.gguf").read_bytes())
        seeds += [path.read_bytes() for path in sorted(CORPUS.iterdir()) if path.read_bytes().startswith(b"GGUF")]
        paths = []
        for i in range(600):
            changed = bytearray(chance.choice(seeds))
            for _ in range(chance.randint(1, 3)):
                at = chance.randrange(min(len(changed), 2000))
                changed[at] = chance.choice([changed[at] ^ (1 << chance.randrange(8)), changed[at] + 1 & 255, 0])
            paths.append(self.folder / f"{i}.gguf")
            paths[-1].write_bytes(changed)
        verdicts = self.tool("judge", *paths).decode().rstrip("\n").split("\n")
        accepted = 0
        for path, verdict in zip(paths, verdicts, strict=True):
            # It does not come back from lengths that the library refuses, so it is not asked.
            if verdict == "good":
                accepted += 1
                self.assertTrue(accepted_by_reference(path), path.read_bytes())
        self.assertGreater(accepted, 50)

    def test_a_trained_model_in_blocks(self):
        folder = os.environ.get("THALIA_VECTORS")
        model = Path(folder, "real", "silero_vad_16k.safetensors") if folder else None
        if model is None or not model.is_file():
            self.skipTest("THALIA_VECTORS names no folder with the trained model")
        from safetensors.numpy import load_file

        writer = GGUFWriter(self.folder / "model.gguf", "silero")
        restored = {}
        for name, tensor in load_file(model).items():
            flat = tensor.astype(np.float32).reshape(-1)
            flat = flat[: flat.size // 256 * 256].reshape(-1, 256)
            for type_name in QUANTIZED if flat.size > 0 else []:
                type_of = GGMLQuantizationType[type_name]
                data = quants.quantize(flat, type_of)
                writer.add_tensor(f"{name[:40]}.{type_name}", data, raw_dtype=type_of)
                restored[f"{name[:40]}.{type_name}"] = quants.dequantize(data, type_of)
        finish(writer)
        for name, expected in restored.items():
            self.check_numbers(self.folder / "model.gguf", name, expected)
        self.tool("carry", self.folder / "model.gguf", self.folder / "out.gguf")
        self.assertEqual((self.folder / "out.gguf").read_bytes(), (self.folder / "model.gguf").read_bytes())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
