"""JSONTestSuite: each text as a member of a model's index, which the program and Python read alike.

y_ texts are taken, n_ texts are refused, and what the suite leaves open is decided the same by both.
"""

import os
import pathlib
import shutil
import subprocess

import pytest
import thalia_checkpoint
from thalia_checkpoint import numpy as thalia_numpy

SOURCES = pathlib.Path(os.environ["THALIA_OTHERS_SOURCES"])
TEXTS = sorted((SOURCES / "test_parsing").glob("*.json"))
PROGRAM = os.environ.get("THALIA_PROGRAM") or shutil.which("thalia")


def test_there_are_texts():
    assert len(TEXTS) > 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import numpy as np

    folder = tmp_path_factory.mktemp("model")
    thalia_numpy.save_file({"w": np.arange(3.0)}, folder / "model-00001-of-00001.safetensors")
    return folder


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_text(path, folder):
    index = folder / "model.safetensors.index.json"
    index.write_bytes(
        b'{"weight_map": {"w": "model-00001-of-00001.safetensors"}, "metadata": {"member": ' + path.read_bytes() + b"}}"
    )
    try:
        with thalia_checkpoint.open(index) as file:
            list(file.tensors)
        taken = True
    except (ValueError, thalia_checkpoint.errors.ThaliaError):
        taken = False
    assert PROGRAM is not None, "THALIA_PROGRAM names no program"
    ended = subprocess.run([PROGRAM, "ls", index], capture_output=True, timeout=60, check=False)
    assert ended.returncode in (0, 3), ended.stderr
    assert taken == (ended.returncode == 0), "the program and Python differ"
    if path.name.startswith("y_"):
        assert taken
    if path.name.startswith("n_"):
        assert not taken
