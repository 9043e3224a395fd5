"""The files of the part `samples`, in a folder that goes with the process."""

import pathlib
import subprocess
import tempfile

_folder = tempfile.TemporaryDirectory(prefix="thalia-witness-")


def write(program):
    """Makes them; once a process."""
    subprocess.run([program, "samples", _folder.name], check=True)


def paths():
    return sorted(pathlib.Path(_folder.name).glob("*.thalia"))


def path(name):
    return pathlib.Path(_folder.name, f"{name}.thalia")


def data(name):
    return path(name).read_bytes()
