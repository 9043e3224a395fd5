"""ByteGrouper, DeltaEncoder and AdaptiveQuantizer: one tensor's bytes and numbers."""

import pickle

import ml_dtypes
import numpy as np
import pytest
import thalia_checkpoint as thalia
from hypothesis import given, settings
from hypothesis import strategies as st
from thalia_checkpoint.mithril import AdaptiveQuantizer, ByteGrouper, DeltaEncoder


def test_bytes_of_equal_significance_lie_together():
    assert ByteGrouper.group(b"\x00\x10\x01\x11\x02\x12") == b"\x00\x01\x02\x10\x11\x12"
    assert ByteGrouper.group(b"abcdABCD", width=4) == b"aAbBcCdD"
    assert ByteGrouper.group(b"") == ByteGrouper.ungroup(b"") == b""
    numbers = np.arange(5, dtype="<u2")
    assert ByteGrouper.group(numbers) == bytes([0, 1, 2, 3, 4, 0, 0, 0, 0, 0])


@settings(deadline=None)
@given(st.binary(max_size=400), st.sampled_from([2, 4, 8]))
def test_grouping_is_undone(data, width):
    data = data[: len(data) // width * width]
    grouped = ByteGrouper.group(data, width)
    assert ByteGrouper.ungroup(grouped, width) == data
    assert grouped == np.frombuffer(data, np.uint8).reshape(-1, width).T.tobytes()


def test_bytes_that_are_no_whole_numbers_are_refused():
    for method in (ByteGrouper.group, ByteGrouper.ungroup):
        with pytest.raises(thalia.UsageError, match="multiple of 2"):
            method(b"abc")
        for width in (0, 1, 3, 16):
            with pytest.raises(thalia.UsageError, match="width"):
                method(b"abcd", width)
        for wrong in ("ab", None, 2, [1, 2]):
            with pytest.raises(TypeError):
                method(wrong)
        with pytest.raises((BufferError, ValueError)):
            method(np.zeros((4, 4), np.uint8)[:, ::2])


@settings(deadline=None)
@given(st.binary(max_size=200), st.binary(min_size=200, max_size=200))
def test_differences_are_undone(current, previous):
    encoder = DeltaEncoder()
    previous = previous[: len(current)]
    delta = encoder.encode(current, previous)
    assert delta == bytes(a ^ b for a, b in zip(current, previous, strict=True))
    assert encoder.decode(delta, previous) == current
    assert encoder.encode(current) == encoder.encode(current, None) == current
    assert encoder.encode(current, current) == b"\0" * len(current)


def test_other_lengths_are_no_difference():
    for method in (DeltaEncoder().encode, DeltaEncoder().decode):
        with pytest.raises(thalia.UsageError, match="3 bytes"):
            method(b"abcd", b"abc")
        with pytest.raises(thalia.UsageError, match="4 bytes"):
            method(b"abc", b"abcd")
        with pytest.raises(TypeError):
            method("abc", "abc")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 8])
def test_numbers_come_back_within_half_a_step(dtype, bits):
    quantizer = AdaptiveQuantizer(bits)
    data = np.random.default_rng(bits).normal(size=(30, 40)).astype(dtype)
    made = quantizer.quantize(data)
    assert made.bits == bits and made.shape == (30, 40)
    assert len(made.data) == (1200 * bits + 7) // 8 < made.nbytes
    back = quantizer.dequantize(made)
    assert back.dtype == data.dtype and back.shape == data.shape
    error = np.abs(back.astype(np.float64) - data.astype(np.float64)).max()
    assert error == pytest.approx(made.max_error)
    rounding = float(np.abs(data).astype(np.float64).max()) * (2**-7 if dtype is not np.float64 else 0)
    assert error <= made.scale * 0.5001 + rounding
    assert made.min == pytest.approx(float(data.min())) and 0 < made.rms_error <= made.max_error
    if bits == 8 and dtype is np.float32:
        codes = np.frombuffer(made.data, np.uint8)
        assert codes.min() == 0 and codes.max() == 255
        restored = (made.min + codes * made.scale).astype(np.float32)
        assert np.allclose(restored, back.reshape(-1), rtol=1e-6, atol=1e-6)


def test_bits_go_where_errors_count():
    rng = np.random.default_rng(0)
    data = rng.normal(size=4096).astype(np.float32)
    sensitivity = np.ones(4096, np.float32)
    sensitivity[:512] = 100
    quantizer = AdaptiveQuantizer(target_bits=4)
    made = quantizer.quantize(data, sensitivity)
    assert made.group_size == 128 and made.bits.shape == made.min.shape == made.scale.shape == (32,)
    assert made.mean_bits <= 4 and made.bits[:4].min() > made.bits[4:].max()
    errors = np.abs(quantizer.dequantize(made) - data)
    assert errors[:512].max() < errors[512:].max() / 4


def test_equal_and_no_numbers_are_codes_too():
    quantizer = AdaptiveQuantizer(4)
    for data in (np.full((3, 3), 2.5, np.float32), np.zeros((0, 3), np.float32), np.float32(7).reshape(())):
        back = quantizer.dequantize(quantizer.quantize(data))
        assert back.tobytes() == data.tobytes() and back.shape == data.shape
    constant = quantizer.quantize(np.full(9, 2.5, np.float32))
    assert constant.min == 2.5 and constant.scale == 0


def test_what_cannot_be_codes_is_refused():
    for bits in (0, 9, -1, 2.5):
        with pytest.raises(thalia.UsageError):
            AdaptiveQuantizer(bits)
    with pytest.raises(thalia.UsageError, match="group_size"):
        AdaptiveQuantizer(4, group_size=7)
    with pytest.raises(thalia.UsageError, match="max_restarts"):
        AdaptiveQuantizer(4, -1)
    with pytest.raises(TypeError, match=r"target_bits"):
        AdaptiveQuantizer(target_bit=4)
    quantizer = AdaptiveQuantizer(4, max_restarts=2)
    for number in (np.nan, np.inf, -np.inf):
        with pytest.raises(thalia.UnsupportedError, match="finite"):
            quantizer.quantize(np.array([1, number], np.float32))
    for data in (np.arange(3), np.array(["a"]), np.ones(2, np.complex64)):
        with pytest.raises(thalia.UnsupportedError):
            quantizer.quantize(data)
    with pytest.raises(thalia.UsageError):
        quantizer.quantize(np.ones(3, np.float32), np.ones(4, np.float32))
    quantizer.quantize(np.ones(3, np.float32), restarts=2)
    with pytest.raises(thalia.UsageError, match="max_restarts"):
        quantizer.quantize(np.ones(3, np.float32), restarts=3)


@pytest.mark.parametrize("sensitivity", [None, np.linspace(0, 1, 2000, dtype=np.float32)])
def test_codes_can_be_pickled(sensitivity):
    quantizer = AdaptiveQuantizer(3)
    made = quantizer.quantize(np.random.default_rng(1).normal(size=(40, 50)).astype(np.float32), sensitivity)
    again = pickle.loads(pickle.dumps(made))
    assert repr(again) == repr(made) and bytes(again.data) == bytes(made.data)
    assert quantizer.dequantize(again).tobytes() == quantizer.dequantize(made).tobytes()


def test_codes_that_do_not_fit_are_refused():
    _, state = AdaptiveQuantizer(3).quantize(np.ones((40, 50), np.float32)).__reduce__()[:2]
    from thalia_checkpoint.mithril._quantization import _restored

    for i, wrong in ((1, (1 << 62, 1 << 62)), (1, (400, 500)), (4, b""), (2, 77)):
        with pytest.raises(thalia.ThaliaError):
            AdaptiveQuantizer(3).dequantize(_restored(*(wrong if n == i else part for n, part in enumerate(state))))
