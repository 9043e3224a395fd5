"""Compressor: checkpoints under keys, with numpy alone."""

import ml_dtypes
import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.mithril import Compressor


def state(seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return {
        "layer.weight": rng.normal(size=(256, 512)).astype(dtype),
        "layer.bias": rng.normal(size=512).astype(dtype),
        "step": np.int64(7).reshape(()),
        "empty": np.zeros((0, 3), np.float32),
        "mask": rng.integers(0, 2, 33).astype(bool),
    }


def same(a, b):
    assert list(a) == sorted(b)
    for name, array in a.items():
        assert array.dtype == b[name].dtype and array.shape == b[name].shape
        assert array.tobytes() == b[name].tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
@pytest.mark.parametrize("byte_grouping", [True, False])
def test_what_comes_out_is_what_went_in(tmp_path, dtype, byte_grouping):
    compressor = Compressor(f"local://{tmp_path}/store", byte_grouping=byte_grouping)
    first = state(0, dtype)
    meta = compressor.save(first, "step_1", metadata={"lr": 1e-3, "name": "é"}, step=1)
    assert meta.original_size == sum(array.nbytes for array in first.values())
    assert meta.previous_key is None and meta.delta_tensors == 0
    assert meta.compressed_size == (tmp_path / "store" / "step_1").stat().st_size
    assert meta.ratio == meta.original_size / meta.compressed_size
    same(compressor.load("step_1"), first)
    assert compressor.metadata("step_1") == ({"lr": 1e-3, "name": "é"}, 1)
    with pytest.raises(thalia.IoError, match="step_0"):
        compressor.metadata("step_0")

    second = {**first, "layer.weight": first["layer.weight"].copy()}
    second["layer.weight"][3, 5] += 1
    delta = compressor.save(second, "step_2", previous_key="step_1")
    assert delta.previous_key == "step_1" and delta.delta_tensors > 0
    assert delta.compressed_size < meta.compressed_size / 10
    same(compressor.load("step_2"), second)
    # By another process, so to say.
    same(Compressor(tmp_path / "store").load("step_2"), second)
    loaded = compressor.load("step_2")
    loaded["layer.weight"][:] = 0  # memory of its own
    same(compressor.load("step_2"), second)


def test_without_deltas_previous_keys_are_not_looked_at(tmp_path):
    compressor = Compressor(tmp_path, delta_enabled=False)
    compressor.save(state(), "a")
    assert compressor.save(state(), "b", previous_key="never").previous_key is None


def test_chains_have_an_end(tmp_path):
    compressor = Compressor(tmp_path, max_chain=2)
    bases = []
    for i in range(6):
        meta = compressor.save(state(), f"s{i}", previous_key=f"s{i - 1}" if i else None)
        bases.append(meta.previous_key)
    assert bases == [None, "s0", "s1", None, "s3", "s4"]


def test_keys_are_those_of_the_storage(tmp_path):
    compressor = Compressor(tmp_path)
    for key in ("b", "runs/1/a"):
        compressor.save(state(), key)
    assert compressor.keys() == ["b", "runs/1/a"]
    assert "b" in compressor and "c" not in compressor
    assert compressor.delete("b") and not compressor.delete("b")
    for key in ("", "../up", "/absolute", "a/../b", ".hidden", "a//b", "a\0b", "x" * 300):
        with pytest.raises(thalia.UsageError):
            compressor.save(state(), key)
        with pytest.raises(thalia.UsageError):
            compressor.load(key)
    (tmp_path / "out").symlink_to("/")
    with pytest.raises(thalia.UsageError):
        compressor.save(state(), "out/tmp/x")
    assert compressor.keys() == ["runs/1/a"]


def test_a_missing_or_other_base_is_one_clear_error(tmp_path):
    compressor = Compressor(tmp_path)
    compressor.save(state(0), "a")
    with pytest.raises(thalia.IoError, match="never"):
        compressor.save(state(0), "b", previous_key="never")
    assert "b" not in compressor
    compressor.save(state(0), "b", previous_key="a")
    with pytest.raises(thalia.UsageError):
        compressor.save(state(0), "a", previous_key="b")
    compressor.delete("a")
    with pytest.raises(thalia.IoError, match="a"):
        Compressor(tmp_path).load("b")
    compressor.save(state(1), "a")
    with pytest.raises(thalia.IntegrityError):
        Compressor(tmp_path).load("b")
    with pytest.raises(thalia.IoError, match="nothing_here"):
        compressor.load("nothing_here")


def test_damage_is_found(tmp_path):
    compressor = Compressor(tmp_path)
    compressor.save(state(0), "a")
    data = bytearray((tmp_path / "a").read_bytes())
    for place in range(0, len(data), max(1, len(data) // 60)):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        (tmp_path / "a").write_bytes(damaged)
        with pytest.raises(thalia.ThaliaError):
            Compressor(tmp_path).load("a")
    (tmp_path / "a").write_bytes(data)
    same(Compressor(tmp_path).load("a"), state(0))


def test_bad_arguments_name_what_was_expected(tmp_path):
    with pytest.raises(thalia.UnsupportedError, match="s3"):
        Compressor("s3://bucket/x")
    with pytest.raises(thalia.UsageError, match=r"level"):
        Compressor(tmp_path, compression_level=23).save(state(), "a")
    compressor = Compressor("mem://")
    with pytest.raises(thalia.UnsupportedError, match="metadata"):
        compressor.save(state(), "a", metadata={"x": object()})
    with pytest.raises(thalia.UnsupportedError, match="metadata"):
        compressor.save(state(), "a", metadata={"x": float("nan")})
    with pytest.raises(thalia.UsageError, match="thalia_checkpoint"):
        compressor.save(state(), "a", metadata={"thalia_checkpoint": 1})
    with pytest.raises(thalia.UnsupportedError, match="object"):
        compressor.save({"x": np.array([object()])}, "a")
    assert compressor.keys() == []


def test_what_is_stored_is_a_file_of_the_format(tmp_path):
    compressor = Compressor(tmp_path)
    compressor.save(state(), "a.mckp", metadata={"run": "x"}, step=12)
    info = thalia.info(tmp_path / "a.mckp")
    assert info.format == "mckp" and info.training_steps == 12 and info.metadata == {"run": "x"}
    assert thalia.verify(tmp_path / "a.mckp").ok
