"""The library against PyTorch: files of torch.save are read, and files of the library are loaded.

usage: reference_test.py TOOL, the program of reference_tool.cc. Exits with 77 where PyTorch is missing.
"""

import collections
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile
from pathlib import Path

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"skipped: {missing}; tools/test --frameworks installs what tests/python/frameworks.txt names")
    sys.exit(77)

warnings.simplefilter("ignore")
os.environ["TORCH_SERIALIZATION_DEBUG"] = "1"  # torch then holds places that it computes against the archive
TOOL = Path(sys.argv[1]).resolve()
DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
    "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "u16": torch.uint16,
    "u32": torch.uint32, "u64": torch.uint64, "bool": torch.bool, "c64": torch.complex64, "c128": torch.complex128,
    "f8_e4m3": torch.float8_e4m3fn, "f8_e5m2": torch.float8_e5m2, "f8_e8m0": torch.float8_e8m0fnu,
    "f8_e4m3fnuz": torch.float8_e4m3fnuz, "f8_e5m2fnuz": torch.float8_e5m2fnuz,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def tool(*arguments):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.splitlines()


def elements(tensor):
    """Bytes row by row."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.is_quantized:
        plain = plain.int_repr()
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    return b"" if plain.numel() == 0 else plain.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def walk(value, path=()):
    """(name, tensor) of all tensors and arrays."""
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        yield ".".join(path) or "tensor", value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from walk(inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from walk(inner, (*path, str(place)))


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def same(self, a, b, path=""):
        if isinstance(a, torch.Tensor):
            self.assertIsInstance(b, torch.Tensor, path)
            self.assertEqual(isinstance(a, torch.nn.Parameter), isinstance(b, torch.nn.Parameter), path)
            about = [(t.layout, t.dtype, t.shape, t.requires_grad, t.is_quantized) for t in (a, b)]
            self.assertEqual(*about, path)
            self.assertEqual(elements(a), elements(b), path)
            if a.layout == torch.sparse_coo:
                self.assertEqual(a.is_coalesced(), b.is_coalesced(), path)
            if a.is_quantized:
                self.assertTrue(torch.equal(a.dequantize(), b.dequantize()), path)
        elif isinstance(a, np.ndarray | np.generic):
            self.assertTrue(np.array_equal(np.asarray(a), b.numpy()), path)
        elif isinstance(a, dict):
            kind = type(a) if type(a) in (collections.OrderedDict, collections.Counter) else dict
            self.assertIs(type(b), kind, path)
            self.assertEqual(list(a), list(b), path)
            if kind is collections.OrderedDict:
                self.assertEqual(a.__dict__, b.__dict__, path)
            for key in a:
                self.same(a[key], b[key], f"{path}.{key}")
        elif isinstance(a, list | tuple) and not isinstance(a, torch.Size):
            self.assertIs(type(a), type(b), path)
            self.assertEqual(len(a), len(b), path)
            for place, (one, other) in enumerate(zip(a, b, strict=True)):
                self.same(one, other, f"{path}.{place}")
        elif isinstance(a, float) and a != a:
            self.assertTrue(isinstance(b, float) and b != b, path)
        elif isinstance(a, frozenset | bytearray):
            self.assertEqual(a, (set if isinstance(a, frozenset) else bytes)(b), path)
        else:
            self.assertIs(type(a), type(b), path)
            self.assertEqual(a, b, path)

    def read(self, file):
        """{name: (facts, bytes)} of the tensors that the library sees, and its index."""
        folder = self.folder / "dump"
        tool("dump", file, folder)
        index = json.loads((folder / "index.json").read_text())
        found = {}
        for place, facts in enumerate(index["tensors"]):
            found[facts["name"]] = (facts, (folder / f"t{place}").read_bytes())
        return found, index

    def check(self, value, *, identical=False, **options):
        """Saves, reads, writes again and loads."""
        file, again, flat = (self.folder / name for name in ("a.pt", "b.pt", "c.pt"))
        torch.save(value, file, **options)
        saved = torch.load(file, weights_only=False)
        found, index = self.read(file)
        for name, tensor in walk(saved):
            with self.subTest(name=name):
                facts, data = found[name]
                self.assertEqual(facts["shape"], list(tensor.shape))
                if not isinstance(tensor, torch.Tensor):
                    self.assertEqual(
                        data, np.ascontiguousarray(tensor).astype(tensor.dtype.newbyteorder("<")).tobytes()
                    )
                elif tensor.layout == torch.strided:
                    self.assertEqual(data, elements(tensor))
                    if not tensor.is_quantized:
                        self.assertEqual(facts["dtype"], NAMES[tensor.dtype])
        losses = tool("copy", file, again)
        for mmap in (False, True):
            with contextlib.ExitStack() as stack:
                if mmap:
                    stack.enter_context(torch.utils.serialization.config.patch("load.calculate_storage_offsets", True))
                self.same(saved, torch.load(again, weights_only=True, mmap=mmap))
        tool("flat", file, flat)
        state = torch.load(flat, weights_only=True, mmap=True)
        self.assertEqual(list(state), [facts["name"] for facts in index["stored"]])
        with zipfile.ZipFile(again) as archive:
            self.assertIsNone(archive.testzip())
        if identical:
            self.assertEqual(losses, [])
            folder = [name.replace("b/", "a/", 1) for name in zipfile.ZipFile(again).namelist()]
            self.assertEqual(folder, zipfile.ZipFile(file).namelist())
            self.assertEqual(again.read_bytes(), file.read_bytes())
        return index


class Objects(Case):
    def test_all_dtypes(self):
        numbers = torch.arange(12, dtype=torch.float32).reshape(3, 4) + 1
        self.check({name: numbers.to(dtype) for name, dtype in DTYPES.items()}, identical=True)
        self.check([torch.empty(shape, dtype=dtype) for shape in ((0,), (2, 0), ()) for dtype in DTYPES.values()])

    def test_states_of_modules_and_optimizers_come_back_byte_for_byte(self):
        for make in (torch.optim.AdamW, torch.optim.Adagrad, torch.optim.RMSprop):
            model = torch.nn.Sequential(
                torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(16, 2)
            )
            optimizer = make(model.parameters(), lr=1e-3)
            schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 5, 5])
            model(torch.rand(2, 3, 4, 4)).sum().backward()
            optimizer.step()
            self.check(model.state_dict(), identical=True)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
            self.check({**state, "rng": torch.get_rng_state(), "schedule": schedule.state_dict()})
            loaded = torch.load(self.folder / "b.pt", weights_only=True)
            model.load_state_dict(loaded["model"])
            optimizer.load_state_dict(loaded["optimizer"])
            self.assertEqual(loaded["model"]._metadata, model.state_dict()._metadata)

    def test_many_keys(self):
        self.check({f"layer.{i}.weight": torch.full((2,), i) for i in range(2500)}, identical=True)
        self.check(list(range(2500)), identical=True)

    def test_recurrent_networks(self):
        self.check(torch.nn.LSTM(3, 5, 2).state_dict(), identical=True)

    def test_transformers_with_tied_weights(self):
        embedding, head = torch.nn.Embedding(10, 4), torch.nn.Linear(4, 10, bias=False)
        head.weight = embedding.weight
        model = torch.nn.ModuleDict({"embedding": embedding, "head": head})
        self.check(model.state_dict(), identical=True)
        loaded = torch.load(self.folder / "b.pt", weights_only=True)
        self.assertEqual(loaded["embedding.weight"].data_ptr(), loaded["head.weight"].data_ptr())
        self.check(dict(model.named_parameters(remove_duplicate=False)), identical=True)
        loaded = torch.load(self.folder / "b.pt", weights_only=True)
        self.assertIs(loaded["embedding.weight"], loaded["head.weight"])

    def test_views_share_memory_again(self):
        base = torch.arange(24.0).reshape(4, 6)
        self.check({"row": base[1], "whole": base, "t": base.t(), "corner": base[1:3, 2:4], "flip": base.flip(0)})
        loaded = torch.load(self.folder / "b.pt", weights_only=True)
        loaded["whole"][1, 2] = 100
        self.assertEqual(loaded["row"][2], 100)
        self.assertEqual(loaded["t"][2, 1], 100)
        self.assertEqual(loaded["corner"][0, 0], 100)
        self.check([torch.ones(1, 3).expand(1000, 3), torch.arange(100)[::7], torch.arange(100.0)[50:]])
        self.assertLess((self.folder / "b.pt").stat().st_size, 4000)
        numbers = torch.tensor([1 + 2j, 3 - 4j])
        self.check({"conj": numbers.conj(), "real": numbers.conj().real.clone()})
        self.check({"neg": numbers.conj().imag})

    def test_sparse_tensors(self):
        for dtype in (torch.float32, torch.float64, torch.int64, torch.complex64, torch.int8):
            dense = (torch.rand(7, 9) > 0.7).to(dtype)
            self.check({"coo": dense.to_sparse(), "csr": dense.to_sparse_csr(), "three": dense[None].to_sparse()})
            self.check([torch.zeros(3, 4, dtype=dtype).to_sparse(), torch.zeros(3, 4, dtype=dtype).to_sparse_csr()])
        raw = torch.sparse_coo_tensor([[2, 0], [0, 1]], [1.0, 2.0], (3, 3))
        self.check({"raw": raw, "parameter": torch.ones(2)})
        for refused in (
            torch.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (3,)),
            torch.eye(4).to_sparse_bsr((2, 2)),
            torch.eye(4).to_sparse_csc(),
            torch.ones(3, 2).to_sparse(1),
        ):
            torch.save({"w": refused}, self.folder / "r.pt")
            with self.assertRaisesRegex(RuntimeError, "coalesce|layout|dense dimensions"):
                tool("dump", self.folder / "r.pt", self.folder / "r")

    def test_quantized_tensors(self):
        numbers = torch.rand(4, 3) * 4
        scales, zeros = torch.rand(3) + 0.1, torch.tensor([1, 2, 3])
        state = {
            str(d): torch.quantize_per_tensor(numbers, 0.1, 3, d) for d in (torch.qint8, torch.quint8, torch.qint32)
        }
        state["channels"] = torch.quantize_per_channel(numbers, scales, zeros, 1, torch.qint8)
        self.check(state, identical=True)

    def test_leaves(self):
        self.check({
            "device": torch.device("cuda:1"), "dtype": torch.float16, "size": torch.Size([3, 4]), "bytes": b"ab\xff",
            "empty": b"", "set": {1, 2}, "frozen": frozenset(["a"]), "big": 2**70, "small": -(2**70), "edge": -(2**63),
            "complex": 1 - 2j, "nan": float("nan"), "inf": -float("inf"), "tiny": 1e-310, "zero": -0.0,
            "default": collections.defaultdict(list, {"a": [1]}), "ordered": collections.OrderedDict(x=1),
            "counter": collections.Counter("aab"), (1, "t"): "tuple key", None: 0, 1.5: "f", True: "t",
            "nested": [[], (), {}, ((1,),)], "text": "\u00e9 \U0001f600 \0 \"", "mutable": bytearray(b"xy"),
        })  # fmt: skip

    def test_arrays_of_numpy(self):
        arrays = [np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.float64(2.5)]
        arrays += [np.arange(3).astype(kind) for kind in (">i4", "<u2", "f2", "c8", ">f8", "?", "i1")]
        for protocol in (2, 3, 4, 5):
            self.check({"arrays": arrays, "rng": list(np.random.RandomState(1).get_state())}, pickle_protocol=protocol)

    def test_other_protocols(self):
        for protocol in (3, 4, 5):
            value = {"a": torch.arange(3), "b": {"c": (1, 2, 3, 4), "d": b"x" * 300, "e": {1, 2}}, "f": 2**100}
            self.check(value, pickle_protocol=protocol)

    def test_random_objects(self):
        chance = random.Random(7)
        pool = []

        def tensor():
            if pool and chance.random() < 0.4:
                shared = chance.choice(pool)
                return chance.choice([shared, shared[1:], shared.t() if shared.dim() == 2 else shared, shared[:1]])
            shape = [chance.randint(1, 4) for _ in range(chance.randint(1, 3))]
            made = torch.randint(0, 2, shape).to(chance.choice(list(DTYPES.values())))
            pool.append(made)
            return made

        def value(depth):
            kind = chance.randrange(9 if depth < 4 else 5)
            if kind < 3:
                return tensor()
            if kind == 3:
                return chance.choice([None, True, 3, -70000, 2**40, 0.1, "text", b"bytes", 1j])
            if kind == 4:
                made = torch.rand(2, 2)
                return torch.nn.Parameter(made, requires_grad=chance.random() < 0.5)
            inner = [value(depth + 1) for _ in range(chance.randint(0, 4))]
            if kind == 5:
                return inner
            if kind == 6:
                return tuple(inner)
            keys = [chance.choice(["a", "b.c", "weight", 1, (2, 3), ""]) for _ in inner]
            return (collections.OrderedDict if kind == 7 else dict)(zip(keys, inner, strict=True))

        for _ in range(60):
            pool.clear()
            made = value(0)
            with self.subTest(value=repr(made)[:200]):
                self.check_random(made)

    def check_random(self, value):
        file, again, third = (self.folder / name for name in ("a.pt", "b.pt", "c.pt"))
        torch.save(value, file)
        tool("copy", file, again)
        saved, loaded = torch.load(file), torch.load(again, mmap=True)
        self.same(saved, loaded)
        tool("copy", again, third)
        self.assertEqual(again.read_bytes(), third.read_bytes())
        # Those that shared memory share it again.
        a, b = ([t for _, t in walk(value) if t.numel() > 0] for value in (saved, loaded))
        for i, one in enumerate(a):
            for k, other in enumerate(a[:i]):
                if one.data_ptr() == other.data_ptr():
                    self.assertEqual(b[i].data_ptr(), b[k].data_ptr())


class Refusals(Case):
    def test_other_objects_are_refused_by_name(self):
        for value, name in (
            (torch.nn.Linear(1, 1), "torch.nn.modules.linear.Linear"),
            (Path("a"), "pathlib.PosixPath"),
            ({"f": print}, "print"),
            ({"o": slice(3)}, "slice"),
        ):
            torch.save(value, self.folder / "a.pt")
            with self.assertRaisesRegex(RuntimeError, f"needs the Python object '.*{name}', which is not loaded"):
                tool("dump", self.folder / "a.pt", self.folder / "d")

    def test_older_files_are_refused_with_advice(self):
        torch.save({"a": torch.ones(2)}, self.folder / "a.pt", _use_new_zipfile_serialization=False)
        with self.assertRaisesRegex(RuntimeError, "save it again with torch.save"):
            tool("dump", self.folder / "a.pt", self.folder / "d")

    def test_meta_tensors(self):
        torch.save(torch.empty(3, device="meta"), self.folder / "a.pt")
        with self.assertRaisesRegex(RuntimeError, "on the device meta"):
            tool("dump", self.folder / "a.pt", self.folder / "d")


class Scripts(Case):
    def compare(self, file):
        found, index = self.read(file)
        state = torch.jit.load(file, map_location="cpu").state_dict()
        for name, tensor in state.items():
            self.assertEqual(found[name][1], elements(tensor), name)
            self.assertEqual(found[name][0]["dtype"], NAMES[tensor.dtype])
        self.assertIn("the code of the TorchScript program", index["losses"][0])
        again = self.folder / "again.pt"
        tool("copy", file, again)
        loaded = dict(walk(torch.load(again, weights_only=True)))
        for name, tensor in state.items():
            self.assertEqual(elements(loaded[name]), elements(tensor))
        return found, state

    def test_scripted_modules(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).eval()
        torch.jit.script(model).save(self.folder / "a.pt")
        self.compare(self.folder / "a.pt")
        model = torch.nn.Sequential(torch.nn.Linear(2, 3)).eval()
        frozen = torch.jit.freeze(torch.jit.script(model))
        frozen.save(self.folder / "f.pt")
        found, _ = self.compare(self.folder / "f.pt")
        weights = [data for name, (_, data) in found.items() if name.startswith("CONSTANTS.c")]
        self.assertIn(elements(model[0].weight), weights)

    @unittest.skipUnless("THALIA_VECTORS" in os.environ, "THALIA_VECTORS names no folder")
    def test_a_program_that_others_use(self):
        folder = Path(os.environ["THALIA_VECTORS"]) / "real"
        found, _ = self.compare(folder / "silero_vad.jit")
        weights = (folder / "silero_vad_16k.safetensors").read_bytes()
        # Of another release, but for the windows of the Fourier transform.
        self.assertIn(found["_model.stft.forward_basis_buffer"][1], weights)
        self.assertEqual(len(found), 33)


class Trees(Case):
    def test_thalia_checkpoint_loads_the_tree(self):
        try:
            from thalia_checkpoint.torch._decode import decode
        except ImportError as missing:
            self.skipTest(f"the package is not built here: {missing}")
        weight = torch.nn.Parameter(torch.rand(2, 3))
        base = torch.arange(6)
        value = {
            "w": [weight, weight],
            "views": (base[:3], base[1:]),
            "n": {1: 0.5, "x": None},
            "t": torch.rand(3, 2).t(),
        }
        torch.save(value, self.folder / "a.pt")
        _, index = self.read(self.folder / "a.pt")
        tensors = {}
        for place, facts in enumerate(index["stored"]):
            data = bytearray((self.folder / "dump" / f"s{place}").read_bytes())
            tensors[facts["name"]] = torch.frombuffer(data, dtype=DTYPES[facts["dtype"]]).reshape(facts["shape"])
        tree = index["metadata"]["thalia_checkpoint"]["tree"]
        loaded = decode(tree, tensors.__getitem__, lambda name: tensors[name].numpy())
        self.same(value, loaded)
        self.assertIs(loaded["w"][0], loaded["w"][1])
        loaded["views"][0][1] = 77
        self.assertEqual(loaded["views"][1][0], 77)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
