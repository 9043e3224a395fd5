"""A server answers while a training publishes: examples/python/train_and_serve.py."""

import json
import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[4] / "examples/python/train_and_serve.py"


def served(run, steps):
    command = [sys.executable, EXAMPLE, run, "--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.fullmatch(
        r"(\d+) requests, answered by (\d+) versions of (\d+), each as its version does\n", done.stdout
    )
    assert found, done.stdout
    return [int(number) for number in found.groups()]


def test_each_answer_is_that_of_one_version_and_a_training_goes_on(tmp_path):
    run = tmp_path / "run"
    requests, answering, versions = served(run, 12)
    assert versions == 12
    assert 2 <= answering <= 12 and requests >= answering
    _, _, versions = served(run, 5)
    assert versions == 17


def test_an_answer_of_another_version_is_found(tmp_path):
    """The example's own check can fail."""
    run = tmp_path / "run"
    served(run, 3)
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    last = json.loads(lines[-1])
    sys.path.insert(0, str(EXAMPLE.parent))
    try:
        from train_and_serve import PROMPTS, check
    finally:
        sys.path.pop(0)
    reply = {"step": last["step"], **last["answers"][PROMPTS[0]]}
    check(run, [(PROMPTS[0], reply)])
    for wrong in ({**reply, "step": 1}, {**reply, "digest": "0" * 64}):
        try:
            check(run, [(PROMPTS[0], wrong)])
        except SystemExit as error:
            assert "answers" in str(error)
        else:
            raise AssertionError(wrong)
