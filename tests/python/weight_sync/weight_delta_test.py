"""What slime and TRL publish, written and read: by their rules, bit for bit, and refused where it is wrong.

The files in tests/data/formats/slime and trl were written by the code of these projects.
"""

import itertools
import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia

DATA = Path(__file__).resolve().parents[2] / "data/formats"
DTYPES = {"BF16": 2, "F32": 4, "F8_E4M3": 1}
NAN_AND_ZERO = {2: [0x7FC1, 0x8000, 0xFFFF], 4: [0x7F800001, 0x80000000, 0xFFFFFFFF], 1: [0x7F, 0x80, 0xFF]}
CHECKSUM_BYTES = {"xxh3-128": 16, "blake3": 32, "adler32": 4}


def write(path, tensors, texts=None):
    """A safetensors file of (dtype, shape, bytes), as its format is described."""
    header, body = {} if texts is None else {"__metadata__": texts}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def read(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    texts = header.pop("__metadata__", {})
    begin = 8 + length
    return texts, {
        name: (of["dtype"], of["shape"], data[begin + of["data_offsets"][0] : begin + of["data_offsets"][1]])
        for name, of in header.items()
    }


def model(seed, before=None):
    rng = np.random.default_rng(seed)
    tensors = {}
    for dtype, size in DTYPES.items():
        bits = rng.integers(0, 256, 300 * size, dtype=np.uint8)
        if before is not None:
            bits = np.frombuffer(before[f"layers.0.{dtype}"][2], np.uint8).copy()
            elements = bits.view(f"<u{size}")
            elements[[5, 6, 7]] = NAN_AND_ZERO[size]
            elements[rng.integers(10, 300, 9)] ^= 1
        tensors[f"layers.0.{dtype}"] = (dtype, [20, 15], bits.tobytes())
    return tensors | {"same": ("F32", [2], bytes(8)), "none": ("F32", [0, 3], b"")}


@pytest.fixture
def models(tmp_path):
    states = [model(0)]
    for step in (1, 2, 3):
        states.append(model(step, states[-1]))
    for step, state in enumerate(states):
        write(tmp_path / f"model-{step}/model.safetensors", state, {"format": "pt"})
    return tmp_path, states


def state_of(path, tmp_path, **options):
    out = tmp_path / "read.safetensors"
    thalia.convert(path, out, replace=True, **options)
    return read(out)[1]


@pytest.mark.parametrize(("encoding", "checksum"), list(itertools.product(["xor", "overwrite"], CHECKSUM_BYTES)))
def test_versions_of_slime_come_back(models, encoding, checksum):
    tmp_path, states = models
    for step in (1, 2, 3):
        version = tmp_path / f"run/weight_v{step:06}"
        before, after = (tmp_path / f"model-{i}" for i in (step - 1, step))
        result = thalia.weight_delta(before, after, version, kind="slime", encoding=encoding, checksum=checksum)
        assert (result.version, result.tensors, result.changed_tensors) == (step, 5, 3)
        index = json.loads((version / "model.safetensors.index.json").read_bytes())
        assert index["metadata"] == {
            "version": f"{step:06}",
            "base_version": f"{step - 1:06}",
            "delta_encoding": encoding,
            "compression_format": "zstd",
            "checksum_format": checksum,
        }
        (file,) = set(index["weight_map"].values())
        texts, frames = read(version / file)
        assert set(texts) == set(frames) == set(index["weight_map"]) == {f"layers.0.{dtype}" for dtype in DTYPES}
        assert all(len(text) == 2 * CHECKSUM_BYTES[checksum] for text in texts.values())
        assert state_of(version, tmp_path, search=[tmp_path / "model-0"]) == states[step]
    with thalia.open(tmp_path / "run", search=[tmp_path / "model-0"]) as file:
        assert file.format == "slime"
        assert file["same"].numpy().tobytes() == bytes(8)


@pytest.mark.parametrize("encoding", ["gap_delta", "raw"])
def test_versions_of_trl_come_back(models, encoding):
    tmp_path, states = models
    (tmp_path / "run/deltas").mkdir(parents=True)
    for step in (1, 2, 3):
        file = tmp_path / f"run/deltas/step_{step:06}.safetensors"
        before, after = (tmp_path / f"model-{i}" for i in (step - 1, step))
        result = thalia.weight_delta(before, after, file, kind="trl", encoding=encoding)
        assert (result.version, result.tensors, result.changed_tensors) == (step, 5, 3)
        texts, tensors = read(file)
        assert texts["encoding"] == encoding and texts["model_version"] == str(step) and texts["sparse"] == "True"
        positions, values = tensors["layers.0.F32.idx"], tensors["layers.0.F32.val"]
        assert positions[0] == ("I32" if encoding == "raw" else "U16") and values[0] == "F32"
        assert state_of(file, tmp_path, search=[tmp_path / "model-0"]) == states[step]
    assert state_of(tmp_path / "run", tmp_path, search=[tmp_path / "model-0"]) == states[3]
    (tmp_path / "run/anchors").mkdir()
    shutil.copy(tmp_path / "model-2/model.safetensors", tmp_path / "run/anchors/step_000002.safetensors")
    assert state_of(tmp_path / "run", tmp_path) == states[3]


def test_a_delta_of_nothing_is_a_version(models):
    tmp_path, states = models
    thalia.weight_delta(tmp_path / "model-0", tmp_path / "model-0", tmp_path / "weight_v000001", kind="slime")
    assert [file.name for file in (tmp_path / "weight_v000001").iterdir()] == ["model.safetensors.index.json"]
    assert state_of(tmp_path / "weight_v000001", tmp_path, search=[tmp_path / "model-0"]) == states[0]


def test_a_full_version_begins_the_chain(models):
    tmp_path, states = models
    shutil.copytree(tmp_path / "model-1", tmp_path / "run/weight_v000001")
    thalia.weight_delta(tmp_path / "model-1", tmp_path / "model-2", tmp_path / "run/weight_v000002", kind="slime")
    assert state_of(tmp_path / "run", tmp_path) == states[2]
    # The version may be the base of another one, as any model may.
    thalia.weight_delta(
        tmp_path / "run/weight_v000002", tmp_path / "model-3", tmp_path / "run/weight_v000003", kind="slime"
    )
    assert state_of(tmp_path / "run", tmp_path) == states[3]


def test_models_of_other_formats_are_compared(models):
    tmp_path, states = models
    for step in (0, 1):
        thalia.convert(tmp_path / f"model-{step}", tmp_path / f"{step}.thalia")
    thalia.weight_delta(tmp_path / "0.thalia", tmp_path / "1.thalia", tmp_path / "weight_v000001", kind="slime")
    assert state_of(tmp_path / "weight_v000001", tmp_path, search=[tmp_path / "model-0"]) == states[1]


def test_what_others_wrote_is_read(tmp_path):
    for name, search in (("slime/versions", ["slime/base"]), ("trl/bucket", [])):
        wanted = read(DATA / name.partition("/")[0] / "newest.safetensors")[1]
        assert state_of(DATA / name, tmp_path, search=[DATA / folder for folder in search]) == wanted


def test_slimes_wrong_versions_are_refused(models):
    tmp_path, states = models
    base, run = tmp_path / "model-0", tmp_path / "run"
    for step in (1, 2):
        thalia.weight_delta(
            tmp_path / f"model-{step - 1}", tmp_path / f"model-{step}", run / f"weight_v{step:06}", kind="slime"
        )
    with pytest.raises(thalia.IoError, match="base_version"):
        state_of(run, tmp_path)
    with pytest.raises(thalia.IntegrityError, match=r"other weights"):
        state_of(run, tmp_path, search=[tmp_path / "model-1"])
    shutil.rmtree(run / "weight_v000001")
    with pytest.raises(thalia.IoError, match="weight_v000001"):
        state_of(run, tmp_path, search=[base])
    # A model that lacks a tensor of the delta.
    write(tmp_path / "other/weight_v000001/model.safetensors", {"same": states[0]["same"]})
    with pytest.raises(thalia.FormatError, match="lacks this tensor"):
        state_of(run, tmp_path, search=[tmp_path / "other"])


def test_every_damage_of_a_delta_is_found(models):
    tmp_path, right = models
    version = tmp_path / "run/weight_v000001"
    thalia.weight_delta(tmp_path / "model-0", tmp_path / "model-1", version, kind="slime", encoding="overwrite")
    (file,) = version.glob("*.safetensors")
    data = file.read_bytes()
    for at in range(0, len(data), 3):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        try:
            state = state_of(tmp_path / "run", tmp_path, search=[tmp_path / "model-0"])
        except thalia.ThaliaError:
            continue
        assert state == right[1], f"byte {at} of {len(data)}"  # a bit that a frame does not use
    for size in range(0, len(data), 7):
        file.write_bytes(data[:size])
        with pytest.raises(thalia.ThaliaError):
            state_of(tmp_path / "run", tmp_path, search=[tmp_path / "model-0"])


@pytest.mark.parametrize("kind", ["slime", "trl"])
def test_models_that_differ_in_more_than_elements_are_refused(models, kind):
    tmp_path, states = models
    out = tmp_path / ("weight_v000001" if kind == "slime" else "step_000001.safetensors")
    others = {
        "lacks": {name: of for name, of in states[1].items() if name != "same"},
        "base lacks": states[1] | {"more": ("F32", [1], bytes(4))},
        "type or shape": states[1] | {"same": ("F32", [1, 2], bytes(8))},
    }
    for what, tensors in others.items():
        write(tmp_path / "other.safetensors", tensors)
        with pytest.raises(thalia.UsageError, match=what):
            thalia.weight_delta(tmp_path / "model-0", tmp_path / "other.safetensors", out, kind=kind)
        assert not out.exists()
    with pytest.raises(thalia.UsageError, match=r"NNNNNN"):
        thalia.weight_delta(tmp_path / "model-0", tmp_path / "model-1", tmp_path / "x", kind=kind)
    with pytest.raises(thalia.UsageError, match="encoding"):
        thalia.weight_delta(tmp_path / "model-0", tmp_path / "model-1", out, kind=kind, encoding="rle")
    thalia.weight_delta(tmp_path / "model-0", tmp_path / "model-1", out, kind=kind)
    with pytest.raises(thalia.ExistsError):
        thalia.weight_delta(tmp_path / "model-0", tmp_path / "model-1", out, kind=kind)
    thalia.weight_delta(tmp_path / "model-0", tmp_path / "model-2", out, kind=kind, replace=True)
    assert state_of(out, tmp_path, search=[tmp_path / "model-0"]) == states[2]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"encoding": "nvcomp_cascaded"}, thalia.UnsupportedError),
        ({"encoding": "other"}, thalia.FormatError),
        ({"version": "2"}, thalia.FormatError),
        ({"model_version": "x"}, thalia.FormatError),
    ],
)
def test_trls_wrong_patches_are_refused(models, change, error):
    tmp_path, _ = models
    file = tmp_path / "step_000001.safetensors"
    thalia.weight_delta(tmp_path / "model-0", tmp_path / "model-1", file, kind="trl")
    texts, tensors = read(file)
    write(file, tensors, texts | change)
    with pytest.raises(error):
        state_of(file, tmp_path, search=[tmp_path / "model-0"], from_="trl")


def test_a_version_that_is_read_is_not_replaced(models):
    tmp_path, states = models
    version = tmp_path / "run/weight_v000001"
    thalia.weight_delta(tmp_path / "model-0", tmp_path / "model-1", version, kind="slime")
    search = [tmp_path / "model-0"]
    for base, new in ((tmp_path / "model-0", version), (version, tmp_path / "model-2")):
        with pytest.raises(thalia.UsageError, match="a file that is read"):
            thalia.weight_delta(base, new, version, kind="slime", search=search, replace=True)
    assert state_of(version, tmp_path, search=search) == states[1]


def test_names_and_versions_of_trl_agree(models):
    tmp_path, states = models
    deltas = tmp_path / "run/deltas"
    deltas.mkdir(parents=True)
    for step in (1, 2):
        file = deltas / f"step_{step:06}.safetensors"
        thalia.weight_delta(tmp_path / f"model-{step - 1}", tmp_path / f"model-{step}", file, kind="trl")
    search = [tmp_path / "model-0"]
    assert state_of(tmp_path / "run", tmp_path, search=search) == states[2]
    shutil.copy(deltas / "step_000001.safetensors", deltas / "step_1.safetensors")
    with pytest.raises(thalia.FormatError, match="two files are of one version"):
        state_of(tmp_path / "run", tmp_path, search=search)
    (deltas / "step_1.safetensors").rename(deltas / "step_000003.safetensors")
    for path in (tmp_path / "run", deltas / "step_000003.safetensors"):
        with pytest.raises(thalia.FormatError, match="model_version"):
            state_of(path, tmp_path, search=search)


def test_the_first_branch_of_trl_is_read(models):
    tmp_path, states = models
    file = tmp_path / "step_000001.safetensors"
    thalia.weight_delta(tmp_path / "model-0", tmp_path / "model-1", file, kind="trl", encoding="raw")
    texts, tensors = read(file)
    del texts["encoding"]
    names = {".idx": ".indices", ".val": ".values"}
    write(
        file,
        {name[:-4] + names[name[-4:]]: of for name, of in tensors.items()},
        texts | {"changed_params": json.dumps([name for name in tensors if name.endswith(".val")])},
    )
    assert state_of(file, tmp_path, search=[tmp_path / "model-0"]) == states[1]


def test_the_program_writes_them(models, run_program):
    tmp_path, states = models
    told = run_program("delta", "model-0", "model-1", "weight_v000001", "--as", "slime", "--json")
    assert json.loads(told)["changed_tensors"] == 3
    assert state_of(tmp_path / "weight_v000001", tmp_path, search=[tmp_path / "model-0"]) == states[1]
