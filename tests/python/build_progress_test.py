"""What is reported a build while pip is silent: its objects, its end, and nothing where nobody sits."""

import contextlib
import importlib.util
import os
import pty
import time
from pathlib import Path

import pytest

# By its place: a build's own modules are in no path of those who use the package.
_place = Path(__file__).parents[2] / "python" / "build_progress.py"
_spec = importlib.util.spec_from_file_location("build_progress", _place)
build_progress = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build_progress)
compiled, explained, told = build_progress.compiled, build_progress.explained, build_progress.told

BUILD = """build a.o: cpp_COMPILER a.cc
build b.o: cpp_COMPILER b.cc
build all: phony a.o b.o
"""


@pytest.fixture
def build(tmp_path):
    (tmp_path / "build.ninja").write_text(BUILD, encoding="utf-8")
    (tmp_path / ".ninja_log").write_text("# ninja log v5\n0\t9\t1\ta.o\tff\n", encoding="utf-8")
    return tmp_path


class NoCompilerError(Exception):
    pass


def told_of(build, seconds=0.0, fails=False):
    """What a terminal shows."""
    controller, terminal = pty.openpty()
    with contextlib.suppress(NoCompilerError), told("package", build, os.ttyname(terminal), between=0.01):
        time.sleep(seconds)
        if fails:
            raise NoCompilerError
    os.close(terminal)
    shown = b""
    while b" after " not in shown or (b"failed" not in shown and b"built" not in shown):
        shown += os.read(controller, 4096)
    os.close(controller)
    return shown.decode()


def test_objects_are_counted(build):
    assert compiled(build) == (1, 2)
    assert compiled(build / "nowhere") is None


def test_the_terminal_hears_of_each_stage(build):
    shown = told_of(build, seconds=0.2)
    assert "package: compiling" in shown
    assert "package: 1 of 2 objects compiled after" in shown
    assert "package: built after" in shown


def test_a_build_that_fails_is_said_to(build):
    assert "package: failed after" in told_of(build, fails=True)


def test_without_a_terminal_nothing_is_told(build, capfd):
    with told("package", build, os.fspath(build / "none" / "tty")):
        pass
    assert capfd.readouterr() == ("", "")


MISSING = 'missing, or too old: please run "apt-get install liburing-dev" (names of Debian)'


@pytest.fixture
def refused(build):
    (build / "meson-logs").mkdir()
    log = f"Run-time dependency liburing found: NO\n\nmeson.build:103:2: ERROR: Problem encountered: {MISSING}\n"
    (build / "meson-logs/meson-log.txt").write_text(log, encoding="utf-8")
    return build


def test_what_is_missing_is_said_last(refused, capfd):
    with pytest.raises(SystemExit), explained("package", refused):
        raise SystemExit(1)
    assert capfd.readouterr() == ("", f"\npackage: {MISSING}\n")
    assert f"failed: {MISSING}; after" in told_of(refused, fails=True)


def test_a_build_that_fails_otherwise_is_not_explained(build, refused, capfd):
    with pytest.raises(NoCompilerError), explained("package", refused):
        raise NoCompilerError
    (build / "meson-logs/meson-log.txt").unlink()
    with pytest.raises(SystemExit), explained("package", build):
        raise SystemExit(1)
    assert capfd.readouterr() == ("", "")
