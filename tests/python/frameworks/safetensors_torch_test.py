"""safetensors.torch's calls, with its results; safe_open for jax."""

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.torch as theirs
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as ours
import torch
from thalia_checkpoint.numpy import save_file as save_arrays


class Tied(torch.nn.Module):
    """Two names of one weight, and one that is a part of another."""

    def __init__(self):
        super().__init__()
        self.b = torch.nn.Linear(4, 4)
        self.a = torch.nn.Linear(4, 4)
        self.a.weight = self.b.weight
        self.c = torch.nn.Linear(3, 2)
        self.register_buffer("part", self.c.bias.detach()[:1])


@pytest.mark.parametrize("ending", ["safetensors", "thalia"])
def test_a_model_with_tied_weights_is_saved_and_loaded_as_theirs(tmp_path, ending):
    torch.manual_seed(1)
    model, path = Tied(), tmp_path / f"m.{ending}"
    ours.save_model(model, path, metadata={"who": "me"})
    if ending == "safetensors":
        theirs.save_model(model, tmp_path / "t.safetensors", metadata={"who": "me"})
        # Of texts the reference has an order of its own each time.
        assert path.stat().st_size == (tmp_path / "t.safetensors").stat().st_size
        with (
            thalia.safe_open(path, "np") as ours_file,
            thalia.safe_open(tmp_path / "t.safetensors", "np") as their_file,
        ):
            assert ours_file.metadata() == their_file.metadata()
        assert theirs.load_model(Tied(), path) == (set(), [])
    with thalia.safe_open(path, "pt") as file:
        assert file.metadata() == {"who": "me", "b.weight": "a.weight", "part": "c.bias"}
        assert "b.weight" not in file.keys()
    for backend in ("mmap", "pread"):
        other = Tied()
        assert ours.load_model(other, path, backend=backend) == (set(), [])
        assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in model.state_dict().items())


def test_what_a_model_or_a_file_lacks_is_told_as_theirs(tmp_path):
    path = tmp_path / "m.safetensors"
    state = {name: tensor.clone() for name, tensor in Tied().state_dict().items()}
    del state["c.weight"]
    ours.save_file({**state, "more": torch.zeros(2)}, path)
    found = []
    for load_model in (ours.load_model, theirs.load_model):
        with pytest.raises(RuntimeError, match=r'Missing key.*"c\.weight"(.|\n)*Unexpected.*"more"') as caught:
            load_model(Tied(), path)
        missing, unexpected = load_model(Tied(), path, strict=False)
        found.append((str(caught.value), missing, sorted(unexpected)))
    assert found[0] == found[1]


def test_tensors_none_of_which_is_all_of_what_they_share_are_refused(tmp_path):
    module = torch.nn.Module()
    whole = torch.arange(6.0)
    module.register_buffer("a", whole[:4])
    module.register_buffer("b", whole[2:])
    for save_model in (ours.save_model, theirs.save_model):
        with pytest.raises(RuntimeError):
            save_model(module, tmp_path / "m.safetensors")
    assert not (tmp_path / "m.safetensors").exists()


def test_a_model_of_other_strides_is_packed_where_that_is_wanted(tmp_path):
    model = torch.nn.Linear(3, 2)
    model.weight.data = torch.arange(6.0).reshape(3, 2).t()
    with pytest.raises(ValueError, match="contiguous"):
        ours.save_model(model, tmp_path / "m.safetensors", force_contiguous=False)
    ours.save_model(model, tmp_path / "m.safetensors")
    assert torch.equal(ours.load_file(tmp_path / "m.safetensors", backend="pread")["weight"], model.weight)


def test_a_tensor_without_elements_is_refused_as_theirs(tmp_path):
    for save_file in (ours.save_file, theirs.save_file):
        with pytest.raises(NotImplementedError):
            save_file({"m": torch.empty(3, device="meta")}, tmp_path / "m.safetensors")


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this torch has no pairs of f4_e2m1")
@pytest.mark.parametrize("ending", ["safetensors", "thalia"])
def test_pairs_of_four_bits_do_not_block_a_file(tmp_path, ending):
    pairs = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 4).view(torch.float4_e2m1fn_x2)
    tensors = {"f4": pairs, "other": torch.arange(3)}
    path = tmp_path / f"m.{ending}"
    ours.save_file(tensors, path)
    if ending == "safetensors":
        theirs.save_file(tensors, tmp_path / "t.safetensors")
        assert path.read_bytes() == (tmp_path / "t.safetensors").read_bytes()
    with thalia.open(path) as file:
        assert (file.tensors["f4"].dtype, file.tensors["f4"].shape) == ("f4_e2m1", (2, 3, 8))
    for loaded in (ours.load_file(path), ours.load(path), ours.load(path, mmap=True)):
        assert loaded["f4"].dtype == torch.float4_e2m1fn_x2 and loaded["f4"].shape == (2, 3, 4)
        assert torch.equal(loaded["f4"].view(torch.uint8), pairs.view(torch.uint8))
        assert torch.equal(loaded["other"], tensors["other"])
    with thalia.safe_open(path, "pt") as file:
        assert file.get_slice("f4").get_dtype() == "F4" and file.get_slice("f4").get_shape() == [2, 3, 8]
        part = file.get_slice("f4")
        for index in (0, -1, ..., slice(1, 2), (slice(None, None, -1), 1), (slice(None), slice(0, 0)), None):
            expected = pairs.view(torch.uint8).numpy()[index]
            assert part[index].dtype == torch.float4_e2m1fn_x2
            assert np.array_equal(part[index].view(torch.uint8).numpy(), expected), index
        assert torch.equal(part[..., 2:6].view(torch.uint8), pairs.view(torch.uint8)[..., 1:3])
        assert torch.equal(part[1, :, :-2].view(torch.uint8), pairs.view(torch.uint8)[1, :, :-1])
        assert part[..., 3:3].shape == (2, 3, 0)
        for index in ((..., 1), (..., slice(1, 4)), (..., slice(0, 3)), (..., slice(None, None, 2)), (0, 0, -1)):
            with pytest.raises(thalia.UnsupportedError, match=r"f4: slice: .* expected even bounds"):
                part[index]
    with pytest.raises(thalia.UnsupportedError, match=r"x: .*expected one dimension or more"):
        ours.save_file({"x": pairs[0, 0, 0]}, path)


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this torch has no pairs of f4_e2m1")
def test_pairs_of_four_bits_lie_in_trees(tmp_path):
    codes = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 4)
    pairs = codes.view(torch.float4_e2m1fn_x2)
    state = {"nested": [{"f4": pairs, "rows": pairs[1:], "turned": pairs.transpose(0, 1)}], "n": 1}
    state["alone"] = codes.clone().transpose(0, 2).view(torch.float4_e2m1fn_x2)
    path = tmp_path / "tree.thalia"
    ours.save(state, path)
    for loaded in (ours.load(path), ours.load(path, mmap=True), ours.load(path.read_bytes())):
        found, expected = loaded["nested"][0], state["nested"][0]
        for name in expected:
            assert found[name].dtype == torch.float4_e2m1fn_x2 and found[name].shape == expected[name].shape
            assert torch.equal(found[name].view(torch.uint8), expected[name].view(torch.uint8)), name
        assert found["rows"].untyped_storage().data_ptr() == found["f4"].untyped_storage().data_ptr()
        assert torch.equal(loaded["alone"].view(torch.uint8), state["alone"].view(torch.uint8))


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this torch has no pairs of f4_e2m1")
@pytest.mark.parametrize("assign", [False, True])
def test_pairs_of_four_bits_load_into_a_module(tmp_path, assign):
    def module():
        made = torch.nn.Module()
        made.register_buffer("f4", torch.zeros(2, 4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2))
        return made

    codes = torch.arange(8, dtype=torch.uint8).reshape(2, 4)
    ours.save({"f4": codes.view(torch.float4_e2m1fn_x2)}, tmp_path / "m.thalia")
    into = module()
    ours.load_into(into, tmp_path / "m.thalia", assign=assign)
    assert torch.equal(into.f4.view(torch.uint8), codes)


@pytest.mark.parametrize("framework", ["flax", "jax"])
def test_safe_open_gives_arrays_of_jax(tmp_path, framework):
    path = tmp_path / "a.safetensors"
    save_arrays({"w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.arange(3), "big": np.array([2**40])}, path)
    with thalia.safe_open(path, framework) as file:
        weight = file.get_tensor("w")
        assert isinstance(weight, jnp.ndarray) and weight.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert file.get_slice("w")[:, 1:].tolist() == [[1, 2], [4, 5]]
        assert file.get_tensor("n").tolist() == [0, 1, 2]
        with pytest.raises(thalia.UnsupportedError, match="big: jax would round int64 to int32; set jax_enable_x64"):
            file.get_tensor("big")
