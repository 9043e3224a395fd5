"""A file that is one of several is not taken for a whole model."""

import numpy as np
import pytest
import thalia_checkpoint as thalia
from gguf import GGUFWriter
from thalia_checkpoint.numpy import load_file, save_file

LACKS = "the tensors of 2 other files: this is file 1 of the 3 of a model"


def split_gguf(path):
    writer = GGUFWriter(str(path), "llama")
    writer.add_uint16("split.no", 0)
    writer.add_uint16("split.count", 3)
    writer.add_tensor("w", np.zeros(4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def save(path):
    if path.suffix == ".gguf":
        split_gguf(path)
    else:
        save_file({"w": np.zeros(4, np.float32)}, path, durability="none")


@pytest.mark.parametrize(
    "name", ["model-00001-of-00003.safetensors", "model-00001-of-00003.thalia", "model-00001-of-00003.gguf", "any.gguf"]
)
def test_it_is_said_to_be_a_part(tmp_path, name):
    path = tmp_path / name
    save(path)
    report = thalia.verify(path)
    assert not report.ok and [finding.message for finding in report.findings] == [f"it lacks {LACKS}"]
    assert (report.findings[0].severity, report.findings[0].code) == ("error", "truncated")
    assert thalia.info(path).warnings == (f"it lacks {LACKS}",)
    assert thalia.convert(path, tmp_path / "out.npz").losses[0] == LACKS
    for out in ("lossless.npz", "lossless.thalia", "lossless.safetensors"):
        with pytest.raises(thalia.UnsupportedError, match="lossless"):
            thalia.convert(path, tmp_path / out, lossless=True)
        assert not (tmp_path / out).exists()
    # Programs load shard by shard.
    assert thalia.open(path)["w"].shape == (4,)
    if path.suffix != ".gguf":
        assert load_file(path)["w"].shape == (4,)


@pytest.mark.parametrize("name", ["model-00001-of-00001.safetensors", "model-1-of-3.thalia", "00001-of-00003.thalia"])
def test_a_whole_file_is_none(tmp_path, name):
    save(tmp_path / name)
    assert thalia.verify(tmp_path / name).ok and thalia.info(tmp_path / name).warnings == ()
    assert thalia.convert(tmp_path / name, tmp_path / "out.npz", lossless=True).losses == ()
