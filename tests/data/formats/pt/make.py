"""Writes the files of this folder with PyTorch, and expected.json: what torch.load has of them.

usage: make.py, with PyTorch 2.13.0 and numpy 2.4.6. The .pt files are published: what is written again need not have
the same bytes, as another version of PyTorch may write another pickle.
"""

import argparse
import collections
import hashlib
import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import torch

warnings.simplefilter("ignore")
HERE = Path(__file__).parent
expected = {}

NAMES = {
    "torch.float32": "f32", "torch.float64": "f64", "torch.float16": "f16", "torch.bfloat16": "bf16",
    "torch.int8": "i8", "torch.int16": "i16", "torch.int32": "i32", "torch.int64": "i64", "torch.uint8": "u8",
    "torch.uint16": "u16", "torch.uint32": "u32", "torch.uint64": "u64", "torch.bool": "bool",
    "torch.complex64": "c64", "torch.complex128": "c128", "torch.float8_e4m3fn": "f8_e4m3",
    "torch.float8_e5m2": "f8_e5m2", "torch.float8_e4m3fnuz": "f8_e4m3fnuz",
    "torch.float8_e5m2fnuz": "f8_e5m2fnuz", "torch.float8_e8m0fnu": "f8_e8m0",
}  # fmt: skip


def walk(value, path, found):
    if isinstance(value, torch.Tensor):
        shown = value.detach()
        if shown.is_quantized:
            shown = shown.int_repr()
        if shown.layout != torch.strided:
            shown = shown.to_dense()
        shown = shown.resolve_conj().resolve_neg().contiguous()
        data = b"" if shown.numel() == 0 else shown.reshape(-1).view(torch.uint8).numpy().tobytes()
        name = ".".join(path) or "tensor"
        found.append(
            {"name": name, "dtype": NAMES[str(shown.dtype)], "shape": list(shown.shape),
             "sha256": hashlib.sha256(data).hexdigest()}
        )  # fmt: skip
    elif isinstance(value, dict):
        for key, inner in value.items():
            walk(inner, (*path, str(key)), found)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            walk(inner, (*path, str(place)), found)


def save(name, value, **options):
    path = HERE / f"{name}.pt"
    if not path.exists():
        torch.save(value, path, **options)
    expected[path.name] = []
    walk(torch.load(path, weights_only=False), (), expected[path.name])


def rewritten(source, name, method=zipfile.ZIP_STORED, change=lambda record, data: data, more=()):
    """The records of a file in an archive of zipfile."""
    with zipfile.ZipFile(HERE / source) as old, zipfile.ZipFile(HERE / name, "w", method) as new:
        for info in old.infolist():
            record = zipfile.ZipInfo(info.filename)
            record.compress_type = method
            new.writestr(record, change(info.filename, old.read(info.filename)))
        for record, data in more:
            new.writestr(zipfile.ZipInfo(record), data)


torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model(torch.rand(5, 3)).sum().backward()
optimizer.step()
save("train", {
    "model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "loss": 0.25,
    "best": float("inf"), "name": "run é", "config": {"dims": (3, 4), "flags": [True, None], 2: "two"},
    "rng": torch.get_rng_state()[:16].clone(),
})  # fmt: skip
dtypes = [getattr(torch, name.removeprefix("torch.")) for name in NAMES]
numbers = torch.arange(6, dtype=torch.float32).reshape(2, 3) + 1
save("dtypes", {NAMES[str(dtype)]: numbers.to(dtype) for dtype in dtypes})
base = torch.arange(24.0).reshape(4, 6)
complex_numbers = torch.tensor([1 + 2j, 3 - 1j])
save("views", {
    "whole": base, "row": base[1], "col": base[:, 2], "t": base.t(), "again": base,
    "alone": torch.arange(12.0).reshape(3, 4).t(), "slice": torch.arange(100.0)[10:20],
    "expand": torch.ones(1, 3).expand(4, 3), "empty": torch.empty(0, 3), "scalar": torch.tensor(2.5),
    "step": torch.arange(10.0)[::3], "conj": complex_numbers.conj(), "neg": torch.tensor([1 + 2j, 3 - 1j]).conj().imag,
})  # fmt: skip
weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
integers = torch.arange(4, dtype=torch.int32)
save("shared", {
    "embed": weight, "head": weight, "a": integers, "b": integers[1:3], "c": integers[2:],
    "grad": torch.ones(2, requires_grad=True), "frozen": torch.nn.Parameter(torch.ones(1), requires_grad=False),
})  # fmt: skip
dense = torch.tensor([[0, 1.0, 0], [2, 0, 3]])
save("sparse", {
    "coo": dense.to_sparse(), "csr": dense.to_sparse_csr(),
    "raw": torch.sparse_coo_tensor([[1, 0], [0, 2]], [5.0, 6.0], (2, 3)), "empty": torch.zeros(2, 2).to_sparse(),
    "csr32": torch.sparse_csr_tensor(
        torch.tensor([0, 1, 2], dtype=torch.int32), torch.tensor([1, 0], dtype=torch.int32),
        torch.tensor([1.0, 2.0]), (2, 2)),
})  # fmt: skip
save("quantized", {
    "t": torch.quantize_per_tensor(numbers, 0.5, 3, torch.qint8),
    "u": torch.quantize_per_tensor(torch.arange(4.0), 0.25, 7, torch.quint8),
    "i": torch.quantize_per_tensor(torch.arange(4.0), 0.25, 7, torch.qint32),
    "c": torch.quantize_per_channel(numbers, torch.tensor([0.5, 0.25]), torch.tensor([1, 2]), 0, torch.qint8),
})  # fmt: skip
save("leaves", {
    "dev": torch.device("cuda:1"), "dt": torch.float16, "size": torch.Size([3, 4]), "bytes": b"ab\xff", "none": b"",
    "set": {1, 2}, "fs": frozenset(["a"]), "big": 2**70, "neg": -(2**70), "m": -(2**63), "l": 2**40, "c": 1 - 2j,
    "nan": float("nan"), "dd": collections.defaultdict(list, {"a": [1]}), "od": collections.OrderedDict(x=1),
    (1, "t"): "tuple key", None: 0, 1.5: "f", True: "t", "nested": [[], (), {}, ((1,),)], "ba": bytearray(b"xy"),
})  # fmt: skip
save("numpy", {
    "f": np.float64(3.5), "a": np.arange(6).reshape(2, 3), "F": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big": np.arange(3, dtype=">i4"), "b": np.bool_(True),
})  # fmt: skip
save("protocol5", {"a": torch.arange(3), "n": np.arange(3.0), "b": b"xy", "s": {1, 2}}, pickle_protocol=5)
save("bare", torch.arange(3.0))
save("namespace", {"args": argparse.Namespace(a=1)})
if not (HERE / "module.pt").exists():
    torch.save(torch.nn.Linear(1, 1), HERE / "module.pt")
    torch.save({"a": torch.arange(3)}, HERE / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 1))).save(HERE / "script.pt")
    widths = {f"dtypes/data/{i}": (dtype.itemsize // (2 if dtype.is_complex else 1)) for i, dtype in enumerate(dtypes)}

    def swapped(record, data):
        if record.endswith("byteorder"):
            return b"big"
        width = widths.get(record, 1)
        return np.frombuffer(data, f"u{width}").byteswap().tobytes() if width > 1 else data

    rewritten("dtypes.pt", "big_endian.pt", change=swapped)
    rewritten("train.pt", "deflated.pt", zipfile.ZIP_DEFLATED)
expected["big_endian.pt"] = expected["dtypes.pt"]
expected["deflated.pt"] = expected["train.pt"]
del expected["namespace.pt"]
(HERE / "expected.json").write_text(json.dumps(expected, indent=0) + "\n")
