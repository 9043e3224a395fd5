"""Links in the folder of a model, as those of a cache: what they lead to is not written to."""

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from thalia_checkpoint._shards_save import save_shards

TENSORS = {"a": torch.arange(4.0), "b": torch.arange(4.0) + 1}


@pytest.mark.parametrize(
    "name", ["model.safetensors", "model.safetensors.index.json", ".model.safetensors.index.json.saving"]
)
@pytest.mark.parametrize("shard_size", [16, "1GB"])
def test_a_model_is_not_written_through_the_links_of_its_folder(tmp_path, name, shard_size):
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / name).symlink_to(precious)
    try:
        save_shards(TENSORS, folder, shard_size, "safetensors", {})
    except thalia.UsageError as error:
        assert "a symbolic link" in str(error)
    else:
        assert torch.equal(thalia_torch.load(folder)["b"], TENSORS["b"])
    assert precious.read_bytes() == b"precious"
