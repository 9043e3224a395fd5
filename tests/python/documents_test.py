"""The examples of the manual run, one behind the other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/python.md"]
FRAMEWORKS = re.compile("torch|lightning|accelerate|transformers")


def needs_frameworks(block):
    return FRAMEWORKS.search(block) is not None


def examples(page, with_torch):
    """The Python examples of a page that need frameworks, or those that do not, from the first on."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
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
