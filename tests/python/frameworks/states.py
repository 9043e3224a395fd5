"""What the tests of the frameworks share."""

import runpy
import subprocess
import sys
from collections import deque
from pathlib import Path

import numpy as np
import torch
from thalia_checkpoint.brain import BrainRegion

EXAMPLES = Path(__file__).resolve().parents[3] / "examples/python"


def same_state(a, b):
    """Whether two nested states are equal bit for bit, with the same containers."""
    if isinstance(a, torch.Tensor):
        # As bytes: nan is itself, and 0 is not -0.
        bits = [x.detach().contiguous().reshape(-1).view(torch.uint8) for x in (a, b)]
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*bits)
    a, b = (x.copy() if isinstance(x, BrainRegion) else x for x in (a, b))
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_state(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple | deque):
        if isinstance(a, deque) and a.maxlen != b.maxlen:
            return False
        return len(a) == len(b) and all(same_state(x, y) for x, y in zip(a, b, strict=True))
    return a == b


def lies_in(tensor, path):
    """Whether a tensor's elements lie in a mapping of the file."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, *_, mapped = line.split(maxsplit=5)
        begin, end = (int(address, 16) for address in addresses.split("-"))
        if begin <= tensor.data_ptr() < end:
            return mapped == str(path)
    return False


def last_line_of(example, capsys, monkeypatch, *arguments):
    """The last line that an example prints, in this process."""
    monkeypatch.setattr(sys, "argv", [example, *map(str, arguments)])
    capsys.readouterr()
    runpy.run_path(str(EXAMPLES / example), run_name="__main__")
    return capsys.readouterr().out.strip().splitlines()[-1]


def dies(example, *arguments):
    """Runs an example in a process that ends in the middle."""
    died = subprocess.run(
        [sys.executable, str(EXAMPLES / example), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert died.returncode == 9, died.stderr
