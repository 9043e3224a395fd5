"""Compressor(quantization=…): checkpoints with weights as codes."""

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.mithril import Compressor, QuantizationConfig


def state(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "a.weight": rng.normal(size=(64, 64)).astype(np.float32),
        "b.weight": rng.normal(size=(64, 64)).astype(np.float32),
        "a.bias": rng.normal(size=64).astype(np.float32),
        "optimizer.exp_avg": rng.normal(size=(64, 64)).astype(np.float32),
    }


def error(a, b, name):
    return float(np.abs(a[name] - b[name]).max())


@pytest.mark.parametrize("quantization", [QuantizationConfig(bits=4, exclude="b.*"), QuantizationConfig(4, ["b.*"])])
def test_weights_are_codes_and_all_else_is_exact(tmp_path, quantization):
    compressor = Compressor(tmp_path, quantization=quantization)
    meta = compressor.save(state(), "a")
    assert meta.quantized_tensors == 1 and meta.lossy_generation == 1
    loaded = compressor.load("a")
    assert 0 < error(loaded, state(), "a.weight") == pytest.approx(meta.largest_error)
    for name in ("b.weight", "a.bias", "optimizer.exp_avg"):
        assert loaded[name].tobytes() == state()[name].tobytes()
    exact = Compressor(tmp_path).save(state(), "exact")
    assert meta.compressed_size < exact.compressed_size and exact.quantized_tensors == exact.lossy_generation == 0


def test_a_number_is_that_of_the_bits(tmp_path):
    errors = []
    for bits in (2, 4, 8):
        meta = Compressor(quantization=bits).save(state(), "a")
        assert meta.quantized_tensors == 2
        errors.append(meta.largest_error)
    assert errors == sorted(errors, reverse=True) and errors[0] > 10 * errors[2]


@pytest.mark.parametrize("of", [dict, lambda known: known.get])
def test_bits_go_to_the_weights_that_count(of):
    known = {"a.weight": np.full((64, 64), 1000, np.float32), "b.weight": np.ones(4096, np.float64)}
    compressor = Compressor(quantization=QuantizationConfig(4, sensitivity=of(known)))
    compressor.save(state(), "a")
    loaded = compressor.load("a")
    assert error(loaded, state(), "a.weight") * 10 < error(loaded, state(), "b.weight")


def test_what_a_sensitivity_raises_comes_through(tmp_path):
    def broken(name):
        raise RuntimeError(f"no gradients of {name}")

    compressor = Compressor(tmp_path, quantization=QuantizationConfig(4, sensitivity=broken))
    with pytest.raises(RuntimeError, match=r"no gradients of a\.weight"):
        compressor.save(state(), "a")
    wrong = {"a.weight": np.ones(3, np.float32)}
    with pytest.raises(thalia.UsageError, match=r"a\.weight"):
        Compressor(tmp_path, quantization=QuantizationConfig(4, sensitivity=wrong)).save(state(), "a")
    assert compressor.keys() == []


def test_generations_are_counted_and_have_an_end():
    compressor = Compressor(quantization=QuantizationConfig(8, max_generations=2))
    compressor.save(state(), "0")
    for i, generation in ((1, 2), (2, None)):
        metadata, _ = compressor.metadata(f"{i - 1}")
        loaded = compressor.load(f"{i - 1}")
        if generation is None:
            with pytest.raises(thalia.UsageError, match="too often"):
                compressor.save(loaded, f"{i}", metadata=metadata)
        else:
            assert compressor.save(loaded, f"{i}", metadata=metadata).lossy_generation == generation


def test_options_are_checked_where_they_are_given(tmp_path):
    for bits in (0, 9, -3):
        with pytest.raises(thalia.UsageError, match="bits"):
            QuantizationConfig(bits)
        with pytest.raises(thalia.UsageError, match="bits"):
            Compressor(tmp_path, quantization=bits)
    with pytest.raises(TypeError):
        QuantizationConfig("many")
    with pytest.raises(TypeError, match="exclude"):
        QuantizationConfig(exclud=["a"])
    for level in (23, -1):
        with pytest.raises(thalia.UsageError, match="level"):
            Compressor(tmp_path, compression_level=level)
    for wrong in ("8", True, 2.5):
        with pytest.raises(TypeError, match="quantization"):
            Compressor(tmp_path, quantization=wrong)
    with pytest.raises(TypeError):
        Compressor(tmp_path, max_chain=-1)
    with pytest.raises(TypeError, match="compression_level"):
        Compressor(tmp_path, compresion_level=3)
    assert list(tmp_path.iterdir()) == []
