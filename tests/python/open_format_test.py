"""open(format=…): the format that is expected, and the class that it gives."""

from typing import get_args

import numpy as np
import pytest
import thalia_checkpoint as thalia
from other_formats import every_format, opened
from thalia_checkpoint._types import OtherFormat
from thalia_checkpoint.numpy import save_file


@pytest.fixture
def path(tmp_path):
    save_file({"weight": np.ones(3)}, tmp_path / "f.thalia")
    return tmp_path / "f.thalia"


def test_the_format_that_there_is_opens(path, tmp_path):
    assert isinstance(thalia.open(path, format="thalia"), thalia.File)
    thalia.delta(path, path, tmp_path / "d.thalia")
    assert thalia.open(tmp_path / "d.thalia", format="thalia").is_delta
    save_file({"weight": np.ones(3)}, tmp_path / "model.safetensors")
    (tmp_path / "f.thalia").rename(tmp_path / "g.thalia")
    assert thalia.open(tmp_path, format="safetensors").format == "safetensors"  # a folder by the file in it


@every_format
def test_of_other_formats(format):
    there, _ = opened(format)
    assert isinstance(thalia.open(there.path, format=format), thalia.AnyFile)
    with pytest.raises(thalia.FormatError, match=rf"format: got {format}, expected thalia$") as error:
        thalia.open(there.path, format="thalia")
    assert error.value.path == there.path and error.value.expected == "thalia"


def test_another_format_is_an_error(path):
    with pytest.raises(thalia.FormatError, match=r"format: got thalia, expected gguf$"):
        thalia.open(path, format="gguf")


def test_a_format_that_there_is_not_is_an_error(path):
    with pytest.raises(thalia.UsageError, match="format: got 'safetensor', expected one of thalia, safetensors, "):
        thalia.open(path, format="safetensor")


def test_what_is_no_file_of_tensors_fails_as_ever(tmp_path):
    with pytest.raises(thalia.MissingFileError):
        thalia.open(tmp_path / "nowhere", format="gguf")
    (tmp_path / "text").write_text("no file of tensors")
    with pytest.raises(thalia.FormatError):
        thalia.open(tmp_path / "text", format="gguf")


def test_all_formats_of_the_library_are_known(path, tmp_path):
    with pytest.raises(thalia.UsageError) as error:
        thalia.convert(path, tmp_path / "out", to="nothing")
    assert error.value.expected.split(", ") == ["thalia", *get_args(OtherFormat)]
