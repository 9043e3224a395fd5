"""What torch's tensors take of memory is within the limit, all of a call together."""

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch


def test_all_tensors_of_a_load_count_together(tmp_path):
    path = tmp_path / "a.thalia"
    state = {"a.w": torch.zeros(100_000), "b.w": torch.zeros(100_000)}
    thalia_torch.save(state, path, compression="zstd", durability="none")
    module = torch.nn.ModuleDict({name: torch.nn.ParameterDict({"w": torch.ones(100_000)}) for name in "ab"})
    reads = {
        400_000: (lambda: thalia.open(path)["a.w"].torch(), lambda: thalia_torch.load_into(module, path)),
        800_000: (lambda: thalia_torch.load(path), lambda: thalia_torch.load_file(path)),
    }
    try:
        for nbytes, calls in reads.items():
            for call in calls:
                thalia.set_default_allocation_limit(nbytes)
                call()
                if nbytes == 800_000:
                    thalia.set_default_allocation_limit(nbytes - 1)
                    with pytest.raises(thalia.FormatError, match="max_allocation_bytes"):
                        call()
    finally:
        thalia.set_default_allocation_limit(None)
    assert not module["a"]["w"].any()
