"""examples/python/tour.py, which tools/demo runs where a wheel is at hand: its ends, good and bad."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.numpy

TOUR = Path(__file__).resolve().parents[2] / "examples/python/tour.py"


def tour(*words):
    return subprocess.run([sys.executable, TOUR, *map(str, words)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tour")


@pytest.fixture(scope="module")
def said(folder):
    ended = tour(folder, "--neurons", 500)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_network_goes_on_in_another_process_with_the_same_spikes(said):
    assert "a network of 500 neurons" in said
    first, second = (line for line in said.splitlines() if "spikes of the next 100 steps" in line)
    assert first == second
    assert "The same spikes." in said


def test_flipped_bit_is_found(said, folder):
    assert "verify: checksum_mismatch in synapses/" in said
    assert sorted(path.name for path in folder.iterdir()) == ["network.thalia"]


def test_network_fires_and_is_not_all_at_once(said, folder):
    with thalia.open(folder / "network.thalia") as file:
        membrane = file["cells/membrane"].numpy()
        assert file.metadata["step"] == 200
    assert 0 < np.count_nonzero(membrane == 0) < membrane.size


def test_damaged_file_ends_the_second_process(said, folder):
    data = bytearray((folder / "network.thalia").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "hurt").mkdir()
    (folder / "hurt/network.thalia").write_bytes(data)
    ended = tour(folder / "hurt", "--resume", 10)
    (folder / "hurt/network.thalia").unlink()
    (folder / "hurt").rmdir()
    assert ended.returncode == 1
    assert "is not the one that was written" in ended.stderr


def test_model_goes_to_thalia_and_back(tmp_path):
    model = tmp_path / "a.safetensors"
    arrays = {f"layers.{i}.weight": np.arange(600, dtype=np.float32) + i for i in range(3)}
    thalia_checkpoint.numpy.save_file(arrays, model)
    ended = tour(tmp_path / "out", "--model", model)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Every byte is the same." in ended.stdout
    back = thalia_checkpoint.numpy.load_file(tmp_path / "out/back.safetensors")
    assert {name: array.tolist() for name, array in back.items()} == {n: a.tolist() for n, a in arrays.items()}


def test_no_model_is_an_error(tmp_path):
    assert tour(tmp_path, "--model", tmp_path / "none.safetensors").returncode != 0
