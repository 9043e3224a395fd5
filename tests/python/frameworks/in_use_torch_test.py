"""AsyncCheckpointer where it cannot be used: in a forked child, and in a callback of its own save."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")

CODE = """
import os, signal, sys, torch, thalia_checkpoint as thalia
from thalia_checkpoint.torch import AsyncCheckpointer

def refused(call):
    try:
        return call()
    except thalia.UsageError as error:
        return error.code

model = torch.nn.Linear(3, 3)
told = []
def progress(done, total):
    if not told:
        told.append(refused(lambda: checkpoints.save(2)))
checkpoints = AsyncCheckpointer(model, folder=sys.argv[1], every=1, progress=progress, durability="none")
first = checkpoints.save(1)
if sys.argv[2] == "ended":
    checkpoints.wait()
if (child := os.fork()) == 0:
    signal.alarm(20)
    print("child", refused(lambda: checkpoints.save(3)), flush=True)
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
checkpoints.wait()
print(*told, len(checkpoints.checkpoints()))
"""


@pytest.mark.parametrize("when", ["ended", "pending"])
def test_a_checkpointer_in_a_forked_child_or_its_own_callback_is_refused(tmp_path, when):
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE, tmp_path, when], capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "child wrong_state\n0\nwrong_state 1\n"
