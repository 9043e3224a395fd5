"""Compressor(low_rank=…): differences as sums of a few products."""

import pickle

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.mithril import Compressor, LowRank


def states():
    """Two, whose weights differ by an outer product."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((96, 80), dtype=np.float32)
    change = np.outer(rng.standard_normal(96), rng.standard_normal(80)).astype(np.float32)
    bias = rng.standard_normal(96, dtype=np.float32)
    before = {"a.weight": weight, "a.bias": bias, "optimizer.exp_avg": weight}
    after = {"a.weight": weight + 0.001 * change, "a.bias": bias + 1, "optimizer.exp_avg": weight + 0.001 * change}
    return before, after


def saved(storage, **options):
    compressor = Compressor(storage, **options)
    before, after = states()
    compressor.save(before, "a")
    return compressor, compressor.save(after, "b", previous_key="a")


@pytest.mark.parametrize("low_rank", [True, LowRank(max_rank=4)])
def test_weights_come_close_and_all_else_is_exact(tmp_path, low_rank):
    compressor, meta = saved(tmp_path, low_rank=low_rank)
    assert (meta.low_rank_tensors, meta.lossy_generation) == (1, 1) and meta.delta_tensors > 1
    loaded, (before, after) = compressor.load("b"), states()
    error = float(np.abs(loaded["a.weight"] - after["a.weight"]).max())
    assert 0 < error == pytest.approx(meta.largest_error) and error < 1e-4
    for name in ("a.bias", "optimizer.exp_avg"):
        assert loaded[name].tobytes() == after[name].tobytes()
    assert compressor.load("a")["a.weight"].tobytes() == before["a.weight"].tobytes()
    exact = saved(tmp_path / "exact")[1]
    assert meta.compressed_size < exact.compressed_size and exact.low_rank_tensors == 0
    assert pickle.loads(pickle.dumps(meta)) == meta
    # Any compressor reads what one with other options wrote.
    assert np.array_equal(Compressor(tmp_path).load("b")["a.weight"], loaded["a.weight"])


def test_names_choose(tmp_path):
    meta = saved(tmp_path, low_rank=LowRank(include=("optimizer.*",)))[1]
    assert meta.low_rank_tensors == 1
    assert saved(tmp_path, low_rank=LowRank(min_elements=10**6))[1].low_rank_tensors == 0
    assert saved(tmp_path, low_rank=LowRank(max_relative_error=0))[1].low_rank_tensors == 0


def test_the_first_of_a_chain_is_exact():
    meta = Compressor(low_rank=True).save(states()[1], "a")
    assert meta.low_rank_tensors == 0 and meta.lossy_generation == 0


def test_options_are_checked_where_they_are_given(tmp_path):
    for wrong in (LowRank(max_rank=0), LowRank(bits_per_element=0.0), LowRank(max_relative_error=2)):
        with pytest.raises(thalia.UsageError):
            Compressor(low_rank=wrong)
    for wrong in (3, "yes"):
        with pytest.raises(TypeError, match="low_rank"):
            Compressor(low_rank=wrong)
    with pytest.raises(TypeError, match="did you mean 'low_rank'"):
        Compressor(low_rang=True)
    compressor = Compressor(tmp_path, low_rank=LowRank(max_rank=2))
    assert pickle.loads(pickle.dumps(compressor)).config == compressor.config


def test_generations_end(tmp_path):
    compressor = Compressor(tmp_path, low_rank=LowRank(max_generations=1))
    before, after = states()
    compressor.save(before, "a")
    compressor.save(after, "b", previous_key="a")
    with pytest.raises(thalia.UsageError, match="lossy_generation"):
        compressor.save(before, "c", previous_key="b", metadata=compressor.metadata("b")[0])


def test_damage_is_found_or_changes_nothing(tmp_path):
    compressor = saved(tmp_path, low_rank=True)[0]
    loaded = compressor.load("b")["a.weight"]
    data = bytearray((tmp_path / "b").read_bytes())
    found = 0
    for at in range(0, len(data), max(1, len(data) // 100)):
        damaged = bytearray(data)
        damaged[at] ^= 0x10
        (tmp_path / "b").write_bytes(damaged)
        try:
            assert np.array_equal(compressor.load("b")["a.weight"], loaded)
        except thalia.ThaliaError:
            found += 1
    assert found > 90
