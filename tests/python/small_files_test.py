"""A small file costs what its bytes and the syncs do: no thread, no ring, and one look at each thing."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from thalia_checkpoint.numpy import load_file, save_file

ARRAYS = "{f'layers.{i}.weight': np.full(25_000, i, np.float32) for i in range(10)}"  # 1 MB
CALLS = "%file,%desc,clone,clone3,fork,vfork,io_uring_setup"
# Twice before it counts: what is imported or made at the first time is there then.
TRACED = """
import os, sys, numpy as np, thalia_checkpoint as thalia
from thalia_checkpoint.numpy import load_file, save_file
path, arrays = sys.argv[1], ARRAYS
def remove():
    os.path.exists(path) and os.unlink(path)
def work():
    return WORK
work(), work()
os.access("/begin of what counts", os.F_OK)
work()
os.access("/end of what counts", os.F_OK)
"""
STARTS = {"clone", "clone3", "fork", "vfork", "io_uring_setup"}
NAMES = ["a.thalia", "a.safetensors"]

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def traced(tmp_path, code, path, *options):
    """A process that runs the code, and that strace follows."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    trace = ["strace", "-f", "-qq", "-e", "signal=none", "-o", str(tmp_path / "calls"), *options]
    run = [*trace, sys.executable, "-c", code.replace("ARRAYS", ARRAYS), str(path)]
    return subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def calls(tmp_path, path, work):
    """The system calls of all threads while work runs, in order: their names, and their texts."""
    with traced(tmp_path, TRACED.replace("WORK", work), path, "-e", f"trace={CALLS}") as process:
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    lines = (tmp_path / "calls").read_text(encoding="utf-8", errors="replace").splitlines()
    (begin,) = (i for i, line in enumerate(lines) if "begin of what counts" in line)
    (end,) = (i for i, line in enumerate(lines) if "end of what counts" in line)
    texts = [line.split(" ", 1)[1].lstrip() for line in lines[begin + 1 : end]]
    return [re.match(r"\w+", text)[0] for text in texts], texts


@pytest.mark.parametrize(
    ("name", "save"),
    [(name, "save_file(arrays, path)") for name in NAMES] + [("a.thalia", "thalia.save(arrays, path)")],
)
@pytest.mark.parametrize("replaced", [False, True])
def test_a_small_save_syncs_file_and_folder_once_and_starts_nothing(tmp_path, name, save, replaced):
    path = tmp_path / "folder" / name
    path.parent.mkdir()
    names, texts = calls(tmp_path, path, save if replaced else f"(remove(), {save})")
    shown = "\n".join(texts)
    assert names.count("fsync") == 2 and "fdatasync" not in names, shown
    assert not STARTS & set(names) and "sync_file_range" not in names, shown
    # The name comes between the two.
    named = max(i for i, call in enumerate(names) if call in ("linkat", "renameat", "renameat2"))
    assert names.index("fsync") < named < len(names) - 1 - names[::-1].index("fsync"), shown
    assert len(load_file(path)) == 10 and os.listdir(path.parent) == [name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("work", ["load_file(path)", "thalia.load(path)", "thalia.open(path).close()"])
def test_a_small_file_is_opened_and_mapped_once(tmp_path, name, work):
    path = tmp_path / name
    save_file({f"layers.{i}.weight": np.full(25_000, i, np.float32) for i in range(10)}, path)
    names, texts = calls(tmp_path, path, work)
    shown = "\n".join(texts)
    # Folders are looked for by opening them as such.
    opened = [text for text in texts if text.startswith("open") and "O_DIRECTORY" not in text]
    assert len(opened) == 1 and not STARTS & set(names), shown
    assert sum(text.startswith("mmap") and "MAP_ANONYMOUS" not in text for text in texts) == 1, shown


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("there", [False, True])
def test_ctrl_c_during_a_slow_sync_leaves_the_old_file(tmp_path, name, there):
    path = tmp_path / "folder" / name
    path.parent.mkdir()
    if there:
        save_file({"old": np.ones(3)}, path)
    before = path.read_bytes() if there else None
    code = """
import sys, numpy as np
from thalia_checkpoint.numpy import save_file
print("begun", flush=True)
save_file(ARRAYS, sys.argv[1])
print("saved")
"""
    with traced(tmp_path, code, path, "-e", "trace=fsync", "-e", "inject=fsync:delay_enter=2000000") as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.7)
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as children:
            os.kill(int(children.read()), signal.SIGINT)
        printed, errors = process.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors and printed == ""
    assert os.listdir(path.parent) == ([name] if there else [])
    assert (path.read_bytes() if there else None) == before
