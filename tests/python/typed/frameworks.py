"""The same of what needs torch and its like: a line that ends in "# wrong" is an error, and no other is."""

from typing import Any, assert_type

import torch
from accelerate import Accelerator
from thalia_checkpoint import accelerate, dcp, flax, lightning, transformers
from thalia_checkpoint import torch as thalia_torch
from thalia_checkpoint.mithril.torch import MithrilSavePlanner
from transformers import PreTrainedModel


def saving(model: torch.nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    thalia_torch.save({"model": model}, "f", compression="plane_entropy")
    thalia_torch.save({"model": model}, "f", compresion="plane_entropy")  # wrong
    assert_type(thalia_torch.save(model, format="thalia", threads=1), bytes)
    thalia_torch.save({"model": model}, f="f", pickle_protocol=2, durability="none")
    thalia_torch.save({"model": model}, f="f", pickle_protocl=2)  # wrong
    thalia_torch.load(f="f", map_location="cpu", weights_only=True)
    thalia_torch.load(f="f", map_locaton="cpu")  # wrong
    thalia_torch.save_file(tensors, "f", durability="none")
    thalia_torch.save_file(tensors, "f", durabilty="none")  # wrong
    thalia_torch.save_model(model, "f", replace=False)
    thalia_torch.save_model(model, "f", relpace=False)  # wrong
    thalia_torch.AsyncCheckpointer(model, folder="run", every=10, io="direct")
    thalia_torch.AsyncCheckpointer(model, folder="run", every=10, io="past the cache")  # wrong


def others(model: PreTrainedModel, accelerator: Accelerator, arrays: dict[str, Any]) -> None:
    accelerate.save_state(accelerator, "f", checksum="sha256")
    accelerate.save_state(accelerator, "f", cheksum="sha256")  # wrong
    transformers.save_pretrained(model, "folder", max_shard_size="1GB", replace=False)
    transformers.save_pretrained(model, "folder", max_shard="1GB")  # wrong
    flax.save_file(arrays, "f", threads=2)
    flax.save_file(arrays, "f", thread=2)  # wrong
    lightning.ThaliaCheckpointIO(durability="data")
    lightning.ThaliaCheckpointIO(durability="date")  # wrong
    dcp.ThaliaStorageWriter("folder", sha256=True)
    dcp.ThaliaStorageWriter("folder", sha_256=True)  # wrong
    dcp.async_save({}, storage_writer=dcp.ThaliaStorageWriter("folder"), no_dist=True)
    dcp.async_save({}, storage_writer=dcp.ThaliaStorageWriter("folder"), no_dst=True)  # wrong
    MithrilSavePlanner(compression_level=3, flatten_state_dict=False)
    MithrilSavePlanner(compression_level=3, flaten_state_dict=False)  # wrong
    transformers.ThaliaCallback(compression="zstd")
    transformers.ThaliaCallback(compresion="zstd")  # wrong
