"""python -m thalia_checkpoint and the script of a wheel: which program they become, and what they say without one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "python" / "wheel_script.py"


def with_program(folder, text):
    program = folder / "thalia"
    program.write_text(f'#!/bin/sh\necho {text} "$@"\nexit 3\n', encoding="utf-8")
    program.chmod(0o755)
    return folder


def script_in(folder):
    """As pip installs it: in a folder of its own, where no package lies beside it."""
    (folder / "bin").mkdir()
    return shutil.copy(SCRIPT, folder / "bin" / "thalia")


def run(command, path, **more):
    environment = {**os.environ, "PATH": os.fspath(path), **more}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_module_becomes_the_program_of_the_path(tmp_path):
    command = [sys.executable, "-m", "thalia_checkpoint", "info", "a b", "--json"]
    ended = run(command, with_program(tmp_path, "found"))
    assert (ended.stdout, ended.stderr, ended.returncode) == ("found info a b --json\n", "", 3)


def test_the_module_says_that_there_is_no_program(tmp_path):
    ended = run([sys.executable, "-m", "thalia_checkpoint", "version"], tmp_path)
    assert ended.returncode == 127
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert "the Debian package thalia" in ended.stderr


def test_the_script_finds_the_program_beside_the_package_without_importing_it(tmp_path):
    package = tmp_path / "thalia_checkpoint"
    (package / "_program").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    with_program(package / "_program", "own")
    with_program(tmp_path, "of the path")
    ended = run([sys.executable, script_in(tmp_path), "ls", "-r"], tmp_path, PYTHONPATH=os.fspath(tmp_path))
    assert (ended.stdout, ended.stderr, ended.returncode) == ("own ls -r\n", "", 3)


def test_the_script_says_what_is_missing(tmp_path):
    script = script_in(tmp_path)
    ended = run([sys.executable, "-S", script], tmp_path, PYTHONPATH="")
    assert ended.returncode == 1
    assert "the Python package thalia_checkpoint" in ended.stderr
    (tmp_path / "thalia_checkpoint").mkdir()
    (tmp_path / "thalia_checkpoint" / "__init__.py").touch()
    ended = run([sys.executable, script], tmp_path, PYTHONPATH=os.fspath(tmp_path))
    assert ended.returncode == 1
    assert "_program/thalia is not there" in ended.stderr


def test_the_script_can_be_run():
    # pip keeps what may be executed of a wheel, and the wheel what the tree says.
    assert os.access(SCRIPT, os.X_OK)
    assert SCRIPT.read_text(encoding="utf-8").startswith("#!python\n")
