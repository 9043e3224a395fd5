"""What saves of a brain write: no more than the file that comes of them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.brain import BrainCheckpoint

CALLS = "write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,io_uring_setup"
SAVE = """
import sys, numpy as np
from thalia_checkpoint import AsyncSaver
from thalia_checkpoint.brain import BrainCheckpoint

def brain(step):
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((2048, 1024)).astype(np.float32)
    weights[7] += step
    return {"regions": {"cortex": {"weights": {"w": weights}}}}

way, path, base, policy, later = sys.argv[1:]
options = {"precision_policy": policy or None, "io": "buffered", "durability": "none"}
more = {"saver": AsyncSaver()} if later else {}
if way == "save":
    done = (BrainCheckpoint.save_async if later else BrainCheckpoint.save)(brain(0), path, **options, **more)
else:
    done = (BrainCheckpoint.save_delta_async if later else BrainCheckpoint.save_delta)(
        brain(1), path, base, **options, **more
    )
if later:
    done = done.wait()
assert done["file_size"] == __import__("os").path.getsize(path)
"""


def written(way, path, base, policy, later):
    """Bytes that system calls wrote to files in the folder, or to files without a name."""
    logs = path.parent.with_name(f"{path.parent.name}.traces")
    logs.mkdir(exist_ok=True)
    for log in logs.iterdir():
        log.unlink()
    trace = ["strace", "-ff", "-y", "-e", f"trace={CALLS}", "-o", str(logs / "of")]
    run = [sys.executable, "-c", SAVE, way, str(path), str(base), policy, "later" if later else ""]
    subprocess.run([*trace, *run], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    text = "".join(log.read_text() for log in logs.iterdir())
    assert "io_uring_setup" not in text  # which writes what strace does not see
    calls = [line for line in text.splitlines() if str(path.parent) in line]
    return sum(int(found[1]) for line in calls if (found := re.search(r"= (\d+)$", line)))


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("policy", ["", "fp16"])
@pytest.mark.parametrize("name", ["a.thalia", "a.thalia.zst", "a.thalia.lz4"])
def test_a_save_writes_its_file_and_nothing_more(name, policy, later, tmp_path):
    path = tmp_path / name
    bytes_written = written("save", path, path, policy, later)
    size = path.stat().st_size
    assert size > 3_000_000 and size <= bytes_written <= 1.02 * size
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("later", [False, True])
def test_a_delta_writes_what_changed(later, tmp_path):
    base, path = tmp_path / "a.thalia", tmp_path / "b.delta.thalia"
    written("save", base, base, "fp16", False)
    bytes_written = written("delta", path, base, "", later)
    size = path.stat().st_size
    assert size < 20_000 and size <= bytes_written <= 1.02 * size + 4096
    with thalia.open(path) as file:
        assert file["cortex/w"].dtype == "f16"


def test_a_brain_may_change_once_a_save_in_the_background_has_begun(tmp_path):
    weights = np.arange(1000, dtype=np.float32)
    brain = {"regions": {"a": {"weights": {"w": weights}}}}
    saver = thalia.AsyncSaver()
    first = BrainCheckpoint.save_async(brain, tmp_path / "a.thalia", saver=saver)
    weights += 1
    assert first.wait()["num_regions"] == 1 and first.done and first.error is None
    second = BrainCheckpoint.save_delta_async(brain, tmp_path / "b.thalia", tmp_path / "a.thalia", saver=saver)
    weights[:] = 0
    assert second.wait(60)["changed_regions"] == 1
    assert np.array_equal(BrainCheckpoint.load(tmp_path / "a.thalia").regions["a"]["weights"]["w"], np.arange(1000))
    assert np.array_equal(BrainCheckpoint.load(tmp_path / "b.thalia").regions["a"]["weights"]["w"], np.arange(1000) + 1)
    with pytest.raises(thalia.UsageError, match="snapshot"):
        BrainCheckpoint.save_async(brain, tmp_path / "c.thalia", saver=saver, snapshot="both")
    with pytest.raises(FileNotFoundError):
        BrainCheckpoint.save_delta_async(brain, tmp_path / "c.thalia", tmp_path / "none.thalia", saver=saver)
    borrowed = BrainCheckpoint.save_async(brain, tmp_path / "c.thalia", saver=saver, snapshot="borrowed")
    assert borrowed.wait()["file_size"] == Path(tmp_path / "c.thalia").stat().st_size
