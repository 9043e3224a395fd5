"""The examples of the manual run, one behind the other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/use/python.md"]
FRAMEWORKS = re.compile("torch|lightning|accelerate|transformers|orbax")
DEEPSPEED = "import deepspeed"


def needs_frameworks(block):
    return FRAMEWORKS.search(block) is not None


def blocks_of(page):
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def deepspeed_example():
    """That of the manual, which takes a process of its own, as a rank among others."""
    (block,) = (block for block in blocks_of("docs/use/python.md") if DEEPSPEED in block)
    return block


def examples(page, with_torch):
    """The Python examples of a page that need frameworks, or those that do not, from the first on."""
    blocks = [block for block in blocks_of(page) if DEEPSPEED not in block]
    first = blocks[:1] if "import numpy" in blocks[0] else []
    return first + [block for block in blocks if needs_frameworks(block) == with_torch and block not in first]


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    run_examples(page, tmp_path, monkeypatch, with_torch=False)


def run_examples(page, tmp_path, monkeypatch, with_torch):
    monkeypatch.chdir(tmp_path)
    found = examples(page, with_torch)
    assert any(needs_frameworks(block) == with_torch for block in found)
    names = {}
    for number, block in enumerate(found):
        exec(compile(block, f"{page}, example {number}", "exec"), names)
