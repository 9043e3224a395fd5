"""Links in the folder of a model, as those of a cache: what they lead to is not written to."""

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from thalia_checkpoint.torch._shards_save import save_shards

TENSORS = {"a": torch.arange(4.0), "b": torch.arange(4.0) + 1}


@pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.index.json"])
@pytest.mark.parametrize("shard_size", [16, "1GB"])
def test_a_model_is_not_written_through_the_links_of_its_folder(tmp_path, name, shard_size):
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / name).symlink_to(precious)
    save_shards(TENSORS, folder, shard_size, "safetensors", {})
    assert torch.equal(thalia_torch.load(folder)["b"], TENSORS["b"])
    assert not any(path.is_symlink() for path in folder.iterdir())
    assert precious.read_bytes() == b"precious"


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
def test_a_configuration_is_not_written_through_a_link(tmp_path, name):
    transformers = pytest.importorskip("transformers")
    from thalia_checkpoint.transformers import save_pretrained

    sizes = {"vocab_size": 16, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, num_attention_heads=1))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / name).symlink_to(tmp_path / "precious")
    with pytest.raises(thalia.UsageError, match="a link"):
        save_pretrained(model, folder)
    assert not (tmp_path / "precious").exists()
