"""Every way into a file, over files that claim far more than they are, in little address space."""

import functools
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.numpy as thalia_numpy

HOSTILE = pathlib.Path(__file__).parents[1] / "data/hostile"
FILES = sorted(path.name for path in HOSTILE.iterdir() if path.suffix != ".md")
#: Of the process. Python and NumPy take half a GiB of it, and each file that is open may take the limit of
#: 1 GiB: what compares files has two.
ADDRESS_SPACE = 3 << 30

#: What is done with the file at `path`, in a folder of its own; each in turn, in one process.
ENTRIES = {
    "open": """
        with thalia.open(path, access=access) as file:
            for tensor in file.tensors.values():
                tensor.shape, tensor.dtype
                attempt(lambda: tensor.numpy())
                attempt(lambda: tensor.sparse())
                attempt(lambda: tensor[..., :1])
        """,
    "safe_open": "[thalia.safe_open(path, framework='numpy').get_tensor(name) for name in ('w', 'b')]",
    "load_file": "thalia_numpy.load_file(path)",
    "load": "thalia_numpy.load(open(path, 'rb').read())",
    "load, objects": "thalia.load(path)",
    "deserialize": "thalia.deserialize(open(path, 'rb').read())",
    "info": "thalia.info(path, access=access)",
    "verify": "thalia.verify(path, access=access)",
    "detect_format": "thalia.detect_format(path)",
    "convert": "thalia.convert(path, 'o.thalia', access=access, replace=True)",
    "convert, dense": "thalia.convert(path, 'o.safetensors', dense=True, dequantize=True, replace=True)",
    "convert, compressed": "thalia.convert(path, 'o.mckp', dense=True, dequantize=True, replace=True)",
    "diff": "thalia.diff(path, path, values=True)",
    "extract": "thalia.extract(path, ['model'], 'e.thalia', replace=True)",
    "merge": "thalia.merge([path, path], 'm.thalia', replace=True)",
    "extract_brain": "thalia.extract_brain(path, 'a/', 'm.thalia', replace=True)",
    "migrate": "thalia.migrate(path, 'v.thalia', to='0.1', replace=True)",
    "stream_params": """
        params = thalia.stream_params(path)
        for name, of in params.params.items():
            if of.nbytes < 1 << 28:  # packed elements of more bytes fit, and take minutes to unpack
                params.load(name)
        """,
    "Follower": "thalia.Follower(os.path.dirname(path)).wait(0)",
    "quantize": "thalia.quantize(path, 'q.thalia', replace=True)",
    "salvage": "thalia.salvage(path, 's.thalia', replace=True)",
    "compress": "thalia.compress(path, 'c.zst', replace=True)",
    "decompress": "thalia.decompress(path, 'd.thalia', replace=True)",
    "compact": "thalia.compact(path, 'k.thalia', replace=True)",
    "recover": "thalia.recover(path)",
    "delta": "thalia.delta(path, path, 'x.thalia', replace=True)",
    "weight_delta": "thalia.weight_delta(path, path, 'weight_v000001', kind='slime', replace=True)",
    "lora_adapter": "thalia.lora_adapter(path, path, 'adapter', replace=True)",
    "rebase": "thalia.rebase(path)",
    "resolve": "thalia.resolve(path, 'r.thalia', replace=True)",
    "edit": "thalia.edit_safetensors_metadata(path, {'a': '1'})",
    "brain": "BrainCheckpoint.load(path)",
}

PROGRAM = """
import json, os, sys
import thalia_checkpoint as thalia
import thalia_checkpoint.numpy as thalia_numpy
from thalia_checkpoint.brain import BrainCheckpoint

path, access, entries = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
ends = {}

def attempt(call):
    try:
        return call()
    except (thalia.ThaliaError, TypeError, ValueError, KeyError, AttributeError):
        return None  # of a dtype that NumPy lacks, of a tensor that is not there, of a file of another kind

for entry, code in entries.items():
    try:
        exec(code, dict(globals()))
        ends[entry] = "done"
    except thalia.ThaliaError as error:
        ends[entry] = f"{error.code}: {error}"
    except (TypeError, ValueError, KeyError) as error:
        ends[entry] = f"{type(error).__name__}: {error}"
print(json.dumps(ends))
"""


@functools.cache
def ends_of(file, access):
    """How each entry ended. Those that take no access are tried once."""
    entries = {name: textwrap.dedent(code) for name, code in ENTRIES.items() if "access" in code or access == "mapped"}
    with tempfile.TemporaryDirectory() as folder:
        return run_entries(pathlib.Path(folder), file, access, entries)


def run_entries(folder, file, access, entries):
    path = folder / file
    path.write_bytes((HOSTILE / file).read_bytes())
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, access, json.dumps(entries)],
        cwd=folder,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


@pytest.mark.skipif("THALIA_SANITIZED" in os.environ, reason="sanitizers reserve more address space")
@pytest.mark.parametrize("access", ["mapped", "copied"])
@pytest.mark.parametrize("file", FILES)
def test_every_entry_ends_with_a_result_or_an_error(file, access):
    ends = ends_of(file, access)
    assert ends.keys() == (ENTRIES.keys() if access == "mapped" else {"open", "info", "verify", "convert"})
    for name, end in ends.items():
        # These name what is missing in a call here, not in the file.
        assert "argument" not in end or "TypeError" not in end, (name, end)
        assert "MemoryError" not in end and "out of memory" not in end, (name, end)


def test_what_claims_too_much_is_refused_by_the_limit():
    if "THALIA_SANITIZED" in os.environ:
        pytest.skip("sanitizers reserve more address space")
    for file in ("coo_expand.pt", "dequant_bomb_2e27.pt", "int4_1000m.mq"):
        end = ends_of(file, "mapped")["convert, dense"]
        assert end.startswith("limit_exceeded") and "max_allocation_bytes" in end


def test_every_function_that_takes_a_file_is_here():
    functions = {name for name in thalia.__all__ if name[0].islower() and not name.startswith("_")}
    called = {word for code in ENTRIES.values() for word in functions if f"thalia.{word}(" in code}
    of_no_file = {"base_param_id", "param_key", "save", "serialize", "serialize_file", "set_default_allocation_limit"}
    assert functions - called == of_no_file


def test_the_limit_holds_for_each_call_and_is_set_back(tmp_path):
    path = tmp_path / "a.thalia"
    with thalia.Writer(path, compression="zstd", durability="none") as writer:
        for name in ("a", "b"):
            writer.add(f"{name}.w", np.zeros(100_000, np.float32))
    reads = {
        400_000: (
            lambda: thalia.open(path)["a.w"].numpy(),
            lambda: thalia.open(path)["a.w"].raw(),
            lambda: thalia.open(path)["a.w"][:],
            lambda: list(thalia.open(path).stream()),
        ),
        800_000: (lambda: thalia_numpy.load_file(path), lambda: thalia_numpy.load(path.read_bytes())),
    }
    try:
        for nbytes, calls in reads.items():
            for call in calls:
                thalia.set_default_allocation_limit(nbytes - 1)
                with pytest.raises(thalia.FormatError, match="max_allocation_bytes"):
                    call()
                thalia.set_default_allocation_limit(nbytes)
                call()
        # What a delta's chain has on the disk counts, and not what the delta stores of it.
        with thalia.Writer(tmp_path / "b.thalia", durability="none") as writer:
            writer.add("w", np.arange(2_000_000, dtype=np.float32))
        thalia.delta(tmp_path / "b.thalia", tmp_path / "b.thalia", tmp_path / "d.thalia", durability="none")
        thalia.set_default_allocation_limit(None)
        assert thalia.open(tmp_path / "d.thalia")["w"].numpy(writable=True)[-1] == 1_999_999
        # Of a part its rows count, and not the whole.
        with thalia.Writer(tmp_path / "c.thalia", durability="none") as writer:
            writer.add("w", np.zeros((2_000, 1_000), np.float32))
        thalia.delta(tmp_path / "c.thalia", tmp_path / "c.thalia", tmp_path / "e.thalia", durability="none")
        row = thalia.open(tmp_path / "e.thalia")["w"]
        thalia.set_default_allocation_limit(3999)
        with pytest.raises(thalia.FormatError, match="max_allocation_bytes"):
            row[1]
        thalia.set_default_allocation_limit(100_000)
        assert row[1].shape == (1_000,)
        for bad in (0, -1):
            with pytest.raises(thalia.UsageError, match=r"bytes: got .*, expected 1 or more"):
                thalia.set_default_allocation_limit(bad)
    finally:
        thalia.set_default_allocation_limit(None)
    assert thalia_numpy.load_file(path)["a.w"].shape == (100_000,)


LARGE = """
import resource, sys
import thalia_checkpoint as thalia

path, most, access = sys.argv[1], int(sys.argv[2]), sys.argv[3]
resource.setrlimit(resource.RLIMIT_AS, (most, most))
with thalia.open(path, access=access) as file:
    print(file["large"].shape, file["small"].numpy().tolist())
    try:
        file["large"].numpy()
    except thalia.IoError as error:
        print(error)
"""


@pytest.mark.skipif("THALIA_SANITIZED" in os.environ, reason="sanitizers reserve more address space")
@pytest.mark.parametrize("access", ["mapped", "copied"])
def test_a_file_that_the_address_space_does_not_hold(tmp_path, access):
    large, most = 3 << 30, 2_000_000 << 10
    header = (
        f'{{"large":{{"dtype":"U8","shape":[{large}],"data_offsets":[0,{large}]}},'
        f'"small":{{"dtype":"I64","shape":[2],"data_offsets":[{large},{large + 16}]}}}}'
    ).encode()
    path = tmp_path / "large.safetensors"
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + large + 16)
    done = subprocess.run(
        [sys.executable, "-c", LARGE, path, str(most), access],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    path.unlink()
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first == f"({large},) [0, 0]"
    assert "address space" in second and "ulimit -v" in second and "large.safetensors" in second


def test_what_streamed_parameters_become_is_counted(tmp_path):
    # A million codes of four bits in a few hundred bytes, each of which numpy has a byte for.
    path = tmp_path / "codes.mq"
    count = 1 << 20
    import zstandard

    content = count // 2 * b"\x11"
    fields = [
        len(content).to_bytes(8, "little") + content,
        (1).to_bytes(8, "little") + np.float32(1).tobytes(),  # scales
        b"\1" + (1).to_bytes(8, "little") + b"\0",  # zero_points
        (0).to_bytes(4, "little"),  # original_dtype
        (1).to_bytes(8, "little") + count.to_bytes(8, "little"),  # shape
        (1).to_bytes(4, "little"),  # method
        b"\1" + count.to_bytes(8, "little"),  # group_size
    ]
    path.write_bytes(zstandard.compress(b"".join(fields)))
    source = thalia.stream_params(path)
    assert source.load("codes").nbytes == count
    assert source.params["codes"].stored_bytes == path.stat().st_size  # what the limit follows, and not the codes
    try:
        thalia.set_default_allocation_limit(count - 1)
        source = thalia.stream_params(path)
        with pytest.raises(thalia.FormatError, match="max_allocation_bytes"):
            source.load("codes")
    finally:
        thalia.set_default_allocation_limit(None)
