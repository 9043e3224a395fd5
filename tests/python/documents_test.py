"""The examples of README and of the pages for users run, in the order of their page, in an empty folder.

Blocks of Python share their names. Those of the shell run line by line, with the program in the path; a line that says
`# exit status 1` has to end so, and every other one with 0. What installs, or changes the machine, runs elsewhere.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FRAMEWORKS = re.compile("torch|dcp|lightning|accelerate|transformers|orbax")
DEEPSPEED = "import deepspeed"
# Of a block that installs: tools/test and tools/demo are the gate's, tests/install has the others.
INSTALLS = re.compile(r"^(tools/|apt-get |pip |meson |ninja |bench/)")
STATUS = re.compile(r"# exit status (\d)\b")
PROGRAM = os.environ.get("THALIA_PROGRAM") or shutil.which("thalia")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks_of(page):
    """The blocks of Python."""
    return [text for language, text in BLOCK.findall(text_of(page)) if language == "python"]


def needs_frameworks(block):
    return FRAMEWORKS.search(block) is not None


def pages():
    found = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs/use").glob("*.md"))]
    return [page for page in found if any(language in ("python", "sh") for language, _ in BLOCK.findall(text_of(page)))]


PAGES = pages()
TORCH_PAGES = [page for page in PAGES if any(map(needs_frameworks, blocks_of(page)))]


def deepspeed_example():
    """That of the manual, which takes a process of its own, as a rank among others."""
    (block,) = (block for block in blocks_of("docs/use/python.md") if DEEPSPEED in block)
    return block


def run_shell(block, where):
    lines = block.replace("\\\n", "").splitlines()
    if any(INSTALLS.match(line) for line in lines):
        assert all(INSTALLS.match(line) for line in lines if line), f"{where}: a block that installs does nothing else"
        return
    # A program that is linked with a sanitizer has its runtime.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment["PATH"] = f"{Path(PROGRAM).parent}:{environment['PATH']}"
    for line in lines:
        ended = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)
        expected = STATUS.search(line)
        assert ended.returncode == int(expected[1] if expected else 0), f"{where}: {line}\n{ended.stdout}{ended.stderr}"


def run_examples(page, folder, monkeypatch, with_torch):
    """All of the page, in order; without frameworks what does not need them, of the shell only where nothing does."""
    monkeypatch.chdir(folder)
    names = {}
    ran = 0
    for number, (language, block) in enumerate(BLOCK.findall(text_of(page))):
        where = f"{page}, block {number}"
        if language == "python" and DEEPSPEED not in block and (with_torch or not needs_frameworks(block)):
            exec(compile(block, where, "exec"), names)
            ran += 1
        elif language == "sh" and PROGRAM and (with_torch or page not in TORCH_PAGES):
            run_shell(block, where)
            ran += 1
    if ran == 0:
        pytest.skip("THALIA_PROGRAM names no program")


@pytest.mark.parametrize("page", [page for page in PAGES if page not in TORCH_PAGES or page == "docs/use/python.md"])
def test_examples_run(page, tmp_path, monkeypatch):
    run_examples(page, tmp_path, monkeypatch, with_torch=False)


def test_every_block_is_of_a_language_that_some_test_runs():
    # tests/readme compiles those of C and C++. Texts, and what is written into a file, are text, json and cmake.
    compiled = {"README.md": {"cpp"}, "cpp.md": {"cpp"}, "c.md": {"c"}}
    blocks = 0
    for path in [ROOT / "README.md", *(ROOT / "docs/use").glob("*.md")]:
        known = {"python", "sh", "text", "json", "cmake"} | compiled.get(path.name, set())
        for language, block in BLOCK.findall(path.read_text(encoding="utf-8")):
            assert language in known, f"{path.name}: a block of '{language}': {block[:60]}"
            blocks += 1
    assert blocks > 50
