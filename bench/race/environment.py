"""The virtual environment that the peers are installed into."""

import filecmp
import importlib.util
import os
import pathlib
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = ROOT / ".venv-bench"
REQUIREMENTS = ROOT / "bench/requirements.txt"


def requirements(text):
    """The requirements of a file, without comments and empty lines."""
    lines = (line.split("#", 1)[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def _install(python, wanted):
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    return subprocess.run([*pip, *wanted], check=False).returncode == 0


def enter():
    """Makes the environment where it is missing or old, and goes on in its Python.

    Where not all packages can be installed together, each is tried by itself.
    """
    if pathlib.Path(sys.prefix) == ENVIRONMENT:
        return
    python = ENVIRONMENT / "bin/python3"
    stamp = ENVIRONMENT / "requirements.txt"
    if not stamp.exists() or not filecmp.cmp(stamp, REQUIREMENTS, shallow=False):
        print(f"Installing the peers into {ENVIRONMENT}", flush=True)
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        text = REQUIREMENTS.read_text(encoding="utf-8")
        wanted = requirements(text)
        if not _install(python, wanted):
            for requirement in wanted:
                if not _install(python, [requirement]):
                    print(f"{requirement} cannot be installed", file=sys.stderr)
        stamp.write_text(text, encoding="utf-8")
    os.execv(python, [str(python), *sys.argv])


def need(package):
    """Goes on in the environment unless this Python has the package."""
    if importlib.util.find_spec(package) is None:
        enter()


def add_package(build):
    """This library's own package: that of the build folder, or of PYTHONPATH."""
    sys.path.append(str(pathlib.Path(build).resolve() / "python"))
