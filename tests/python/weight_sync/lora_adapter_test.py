"""Adapters of what changed between two models: their tensors and configuration, and what they cannot hold."""

import json

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.numpy as thalia_numpy

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _seeded():
    """The same numbers whichever tests run."""
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state


def matrix(rows, columns):
    """Sums with a product are exact, so that its rank is that of the change."""
    return RNG.integers(-128, 128, (rows, columns)).astype("f4") / 64


def product(rows, columns, rank):
    left, right = (RNG.integers(-7, 8, shape) for shape in ((rows, rank), (rank, columns)))
    return (left @ right).astype("f4") / 64


def write(folder, tensors, configured=False):
    folder.mkdir()
    thalia_numpy.save_file(tensors, folder / "model.safetensors")
    if configured:
        (folder / "config.json").write_text("{}")
    return folder


def read(folder):
    config = json.loads((folder / "adapter_config.json").read_bytes())
    return config, thalia_numpy.load_file(folder / "adapter_model.safetensors")


def change_of(config, tensors, module):
    """What peft adds to the layer, in the order of its weight, by the rules of peft 0.21."""
    rank = config["rank_pattern"].get(module, config["r"])
    alpha = config["alpha_pattern"].get(module, config["lora_alpha"])
    down, up = (tensors[f"base_model.model.{module}.lora_{part}.weight"] for part in "AB")
    assert down.shape[0] == up.shape[1] == rank
    change = up.astype("f8") @ down.astype("f8") * (alpha / rank)
    return change.T if config["fan_in_fan_out"] else change


@pytest.fixture
def linear(tmp_path):
    """A model of linear layers; what changed has rank 2, 3, 2, and nothing."""
    base = {
        "model.embed_tokens.weight": matrix(30, 16),
        "model.layers.0.q.weight": matrix(16, 16),
        "model.layers.0.up.weight": matrix(24, 16),
        "model.layers.1.q.weight": matrix(16, 16),
        "model.layers.1.up.weight": matrix(24, 16),
        "model.norm.weight": matrix(1, 16)[0],
    }
    changes = {"model.layers.0.q": product(16, 16, 2), "model.layers.0.up": product(24, 16, 3)}
    changes["model.layers.1.q"] = product(16, 16, 2)
    new = {name: array + changes.get(name.removesuffix(".weight"), 0) for name, array in base.items()}
    write(tmp_path / "base", base, configured=True)
    write(tmp_path / "new", new)
    return tmp_path, base, new, changes


def test_an_adapter_is_the_change(linear):
    tmp_path, base, _, changes = linear
    result = thalia.lora_adapter(tmp_path / "base", tmp_path / "new", tmp_path / "adapter")
    assert (result.tensors, result.changed_tensors, result.rank, result.left_out) == (6, 3, 3, ())
    assert {m.name.removesuffix(".weight"): m.rank for m in result.matrices} == {
        "model.layers.0.q": 2,
        "model.layers.0.up": 3,
        "model.layers.1.q": 2,
    }
    assert all(m.relative_error < 1e-4 and 0 < m.rms_error <= m.max_error < 1e-6 for m in result.matrices)
    assert sorted(file.name for file in (tmp_path / "adapter").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    config, tensors = read(tmp_path / "adapter")
    assert config["rank_pattern"] == config["alpha_pattern"] == {"model.layers.0.q": 2, "model.layers.1.q": 2}
    assert (config["r"], config["lora_alpha"], config["fan_in_fan_out"]) == (3, 3, False)
    assert config["base_model_name_or_path"] == str(tmp_path / "base")
    assert config["target_modules"] == list(changes)
    assert len(tensors) == 2 * len(changes)
    for module, change in changes.items():
        assert np.abs(change_of(config, tensors, module) - change).max() < 1e-6
    size = sum(file.stat().st_size for file in (tmp_path / "adapter").iterdir())
    assert (result.file_bytes, result.base_bytes) == (size, sum(a.nbytes for a in base.values()))


def test_a_matrix_gets_the_rank_that_its_loss_needs(linear):
    tmp_path, *_ = linear
    base, new, out = (tmp_path / name for name in ("base", "new", "adapter"))
    most = thalia.lora_adapter(base, new, out, max_rank=1)
    assert most.rank == 1 and all(m.relative_error > 0.1 for m in most.matrices)
    assert read(out)[0]["rank_pattern"] == {}
    least = min(m.relative_error for m in most.matrices)
    greatest = max(m.relative_error for m in most.matrices)
    middle = (least + greatest) / 2
    enough = thalia.lora_adapter(base, new, out, max_relative_error=middle, replace=True)
    ranks = [m.rank for m in enough.matrices]
    assert ranks == [1 if m.relative_error <= middle else 2 for m in most.matrices] and set(ranks) == {1, 2}
    assert all(m.relative_error <= middle for m in enough.matrices)
    with pytest.raises(thalia.UsageError, match="rank 1"):
        thalia.lora_adapter(base, new, out, max_rank=1, max_relative_error=middle, replace=True)
    for wrong in ({"max_rank": 0}, {"max_relative_error": 1.5}, {"max_relative_error": float("nan")}):
        with pytest.raises(thalia.UsageError, match=next(iter(wrong))):
            thalia.lora_adapter(base, new, out, replace=True, **wrong)


def test_other_types_and_formats_are_compared(linear):
    tmp_path, _, new, changes = linear
    thalia.convert(tmp_path / "base", tmp_path / "base.thalia")
    write(tmp_path / "double", {name: array.astype("f8") for name, array in new.items()})
    result = thalia.lora_adapter(tmp_path / "base.thalia", tmp_path / "double", tmp_path / "adapter")
    assert [m.dtype for m in result.matrices] == ["f64"] * 3 and result.left_out == ()
    config, tensors = read(tmp_path / "adapter")
    assert config["base_model_name_or_path"] is None
    for module, change in changes.items():
        assert np.abs(change_of(config, tensors, module) - change).max() < 1e-6


def test_what_an_adapter_cannot_hold_is_named_or_left_out(linear):
    tmp_path, _, new, _ = linear
    new["model.norm.weight"] = new["model.norm.weight"] + 1
    new["model.embed_tokens.weight"] = new["model.embed_tokens.weight"] * 2
    new["model.layers.1.up.weight"] = np.full((24, 16), np.nan, "f4")
    new["more.weight"] = matrix(2, 2)
    write(tmp_path / "more", new)
    left_out = {
        "model.norm.weight": "no matrix",
        "model.embed_tokens.weight": "an embedding",
        "more.weight": "the base lacks it",
    }
    with pytest.raises(thalia.UnsupportedError) as error:
        thalia.lora_adapter(tmp_path / "base", tmp_path / "more", tmp_path / "adapter")
    assert all(f"{name} ({reason})" in str(error.value) for name, reason in left_out.items())
    assert not (tmp_path / "adapter").exists()
    with pytest.warns(UserWarning, match="left out") as warned:
        result = thalia.lora_adapter(tmp_path / "base", tmp_path / "more", tmp_path / "adapter", leave_out=True)
    left_out["model.layers.1.up.weight"] = "its change is not finite"
    assert {tensor.name: tensor.reason for tensor in result.left_out} == left_out
    assert len(warned) == 4 and result.changed_tensors == 7
    assert len(read(tmp_path / "adapter")[1]) == 6
    with pytest.raises(thalia.UsageError, match="no matrix changed"):
        thalia.lora_adapter(tmp_path / "base", tmp_path / "base", tmp_path / "none")
    # A model without some tensors of the base.
    write(tmp_path / "less", {name: array for name, array in new.items() if "layers" in name} | {"x": np.zeros(1)})
    with pytest.raises(thalia.UnsupportedError, match=r"model.norm.weight \(the new model lacks it\)"):
        thalia.lora_adapter(tmp_path / "base", tmp_path / "less", tmp_path / "none")


def test_inputs_by_outputs_are_found_by_their_biases(tmp_path):
    base, changes = {}, {}
    for name, (rows, columns, bias) in {
        "h.0.c_attn": (8, 24, 24),
        "h.0.c_proj": (8, 8, 8),
        "h.0.c_fc": (8, 32, 32),
        "head": (1, 8, 1),
    }.items():
        base[f"{name}.weight"], base[f"{name}.bias"] = matrix(rows, columns), np.zeros(bias, "f4")
        changes[name] = product(rows, columns, 1)
    for kind, names in {"conv": ["h.0.c_attn", "h.0.c_proj"], "linear": ["head"]}.items():
        new = {n: a + changes[m] if (m := n.removesuffix(".weight")) in names else a for n, a in base.items()}
        write(tmp_path / kind, new)
        if kind == "conv":
            write(tmp_path / "base", base)
        thalia.lora_adapter(tmp_path / "base", tmp_path / kind, tmp_path / f"{kind}-adapter")
        config, tensors = read(tmp_path / f"{kind}-adapter")
        assert config["fan_in_fan_out"] is (kind == "conv")
        for name in names:
            assert np.abs(change_of(config, tensors, name) - changes[name]).max() < 1e-6


def test_names_that_end_as_others_keep_their_ranks(tmp_path):
    ranks = {"0": 1, "enc.0": 3, "enc.enc.0": 2, "dec[0]": 1}
    base = {f"{name}.weight": matrix(8, 8) for name in ranks}
    new = {f"{name}.weight": base[f"{name}.weight"] + product(8, 8, rank) for name, rank in ranks.items()}
    thalia.lora_adapter(write(tmp_path / "base", base), write(tmp_path / "new", new), tmp_path / "adapter")
    config, _ = read(tmp_path / "adapter")
    patterns = [("enc.enc.0", 2), ("dec\\[0\\]", 1), ("enc.0", 3), ("0", 1)]
    assert list(config["rank_pattern"].items()) == list(config["alpha_pattern"].items()) == patterns


def test_an_adapter_is_replaced_only_if_asked_for(linear):
    tmp_path, *_ = linear
    paths = [tmp_path / name for name in ("base", "new", "adapter")]
    thalia.lora_adapter(*paths)
    before = read(paths[2])[0]
    with pytest.raises(thalia.ExistsError):
        thalia.lora_adapter(*paths, max_rank=1)
    assert read(paths[2])[0] == before
    thalia.lora_adapter(*paths, max_rank=1, replace=True)
    assert read(paths[2])[0]["r"] == 1


def test_the_program_writes_an_adapter(linear, run_program):
    tmp_path, *_, changes = linear
    command = ["delta", "base", "new", "adapter", "--as", "peft", "--low-rank", "--max-rank", "2"]
    told = json.loads(run_program(*command, "--json"))
    assert [m["name"] for m in told["low_rank"]] == [f"{module}.weight" for module in changes]
    assert (told["rank"], told["left_out"], told["changed_tensors"]) == (2, [], 3)
    config, _ = read(tmp_path / "adapter")
    assert config["base_model_name_or_path"] == "base"
    said = run_program(*command, "--force")
    assert "3 of 6 tensors changed, rank 2" in said and "model.layers.0.up.weight" in said
