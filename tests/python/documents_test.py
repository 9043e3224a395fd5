"""The examples of README and of the pages for users run, in the order of their page, in an empty folder.

Blocks of Python share their names. Those of the shell run line by line, with the program in the path; a line that says
`# exit status 1` has to end so, and every other one with 0. What installs, or changes the machine, runs elsewhere.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from thalia_checkpoint import mithril, store

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
    compiled = {"README.md": {"cpp"}, "cpp.md": {"cpp"}, "follow.md": {"c", "cpp"}, "c.md": {"c"}}
    blocks = 0
    for path in [ROOT / "README.md", *(ROOT / "docs/use").glob("*.md")]:
        known = {"python", "sh", "text", "json", "cmake"} | compiled.get(path.name, set())
        for language, block in BLOCK.findall(path.read_text(encoding="utf-8")):
            assert language in known, f"{path.name}: a block of '{language}': {block[:60]}"
            blocks += 1
    assert blocks > 50


def format_blocks(language):
    pages = sorted((ROOT / "docs/format").glob("*.md"))
    return [block for page in pages for kind, block in BLOCK.findall(page.read_text("utf-8")) if kind == language]


def test_every_block_of_the_format_is_of_a_kind_that_some_test_holds():
    # Bytes without a language, and hex: tests/witness and tests/formats/mckp.
    pages = [*(ROOT / "docs/format").glob("*.md"), *(ROOT / "docs/contribute").glob("*.md")]
    blocks = [(page, kind) for page in pages for kind, _ in BLOCK.findall(page.read_text("utf-8"))]
    assert len(blocks) > 35
    assert {kind for page, kind in blocks if page.parent.name == "format"} == {"", "hex", "json", "toml", "python"}
    assert {kind for page, kind in blocks if page.parent.name == "contribute"} == {"text", "sh"}


def test_json_of_the_pages_is_json():
    blocks = format_blocks("json")
    assert len(blocks) >= 8
    for block in blocks:
        assert json.loads(block)


def test_a_run_takes_the_configuration_of_the_page(tmp_path):
    (block,) = format_blocks("toml")
    (tmp_path / "run.toml").write_text(block + '[[phases]]\nname = "phase3"\ngate = "distill_best"\n', encoding="utf-8")
    run = store.Run(tmp_path)
    assert run.phases == ("phase1", "phase3")
    assert run.config["pool"]["anchors"] == ["bc_best", "distill_best"]


def test_a_compressor_takes_the_configuration_of_the_page():
    (block,) = [text for kind, text in BLOCK.findall(text_of("docs/use/from-mithril.md")) if kind == "json"]
    config = json.loads(block)["checkpoint"]
    assert config["use_mithril"] is True
    assert mithril.Compressor(**config["mithril_config"])


def test_the_lines_that_mend_an_old_delta_run(tmp_path, monkeypatch):
    (block,) = format_blocks("python")
    monkeypatch.chdir(tmp_path)
    Path("step1.delta.thalia").write_bytes(b"delta")
    exec(compile(block, "v01.md", "exec"), {})
    assert Path("step1.loads.delta.thalia").read_bytes() == b"delta" + hashlib.sha256(b"delta").digest()


def test_commands_for_contributors_name_what_is_there():
    """They build, fuzz and measure for long, and so do not run here; what they name is there."""
    named = set()
    for page in [*(ROOT / "docs/contribute").glob("*.md"), ROOT / "README.md", ROOT / "docs/use/quick-start.md"]:
        for kind, block in BLOCK.findall(page.read_text("utf-8")):
            if kind == "sh":
                lines = block.replace("\\\n", "").splitlines()
                named |= {line.partition("#")[0].strip() for line in lines if re.match(r"(?:tools|bench|tests)/", line)}
    assert len(named) > 8
    for line in named:
        program, *words = line.split()
        assert os.access(ROOT / program, os.X_OK), line
        options = [word for word in words if word.startswith("--")]
        if options:
            said = subprocess.run([ROOT / program, "--help"], capture_output=True, text=True, check=True).stdout
            assert [option for option in options if option not in said] == [], line
