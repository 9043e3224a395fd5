"""Operations on whole files: each does what the program's command of its name does."""

import os
import signal
import threading

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.numpy import load_file, save_file


def write(path, scale=0.0, **options):
    rng = np.random.default_rng(2)
    with thalia.Writer(path, durability="none", **options) as writer:
        weight = rng.normal(size=(200, 300)).astype(np.float32)
        step = rng.normal(size=(200, 300)).astype(np.float32)
        writer.add("layers.0.weight", weight + np.float32(scale) * step)
        writer.add("layers.0.bias", np.arange(300, dtype=np.float32))
        writer.add("optimizer.layers.0.weight.exp_avg_sq", weight**2)
        writer.metadata = {"step": int(scale * 1000)}
    return path


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "a.thalia"), write(tmp_path / "b.thalia", 1e-3)


def test_verify_tells_what_is_wrong_and_where(files):
    path = files[0]
    report = thalia.verify(path)
    assert report.ok and report.tensors == 3 and not report.findings
    offset = thalia.open(path).tensors["layers.0.weight"]._source.offset
    data = bytearray(path.read_bytes())
    data[offset + 1000] ^= 1
    path.write_bytes(data)
    report = thalia.verify(path)
    assert not report.ok
    assert "layers.0.weight" in {finding.tensor for finding in report.findings}
    assert {finding.code for finding in report.findings} == {"checksum_mismatch"}
    assert thalia.verify(path, quick=True).ok


def test_diff_names_what_changed(files):
    a, b = files
    assert thalia.diff(a, a).same
    diff = thalia.diff(a, b, values=True)
    assert not diff.same and [region.name for region in diff.regions] == ["layers.0"]
    (tensor,) = diff.regions[0].tensors
    assert tensor.name == "layers.0.weight" and tensor.values.elements == 60_000
    assert 0 < tensor.values.max_difference < 0.01 and tensor.values.cosine > 0.99
    assert thalia.diff(a, b, atol=0.1, tensors=["layers.0.weight"]).same
    with pytest.raises(thalia.NotFoundError, match="wieght"):
        thalia.diff(a, b, tensors=["layers.0.wieght"])


def test_deltas_are_chains_that_come_back(files, tmp_path):
    a, b = files
    delta = tmp_path / "b.delta.thalia"
    result = thalia.delta(a, b, delta)
    assert result.tensors == 3 and delta.stat().st_size < b.stat().st_size
    with thalia.open(delta) as state, thalia.open(b) as full:
        assert state.is_delta and not full.is_delta
        for name, tensor in full.tensors.items():
            found = state.tensors[name]
            np.testing.assert_array_equal(found.numpy(), tensor.numpy())
            np.testing.assert_array_equal(found[3:9], tensor[3:9])
            assert not found.is_mapped
        np.testing.assert_array_equal(
            state.tensors["layers.0.weight"][5:50, 7], full.tensors["layers.0.weight"][5:50, 7]
        )
    thalia.resolve(delta, tmp_path / "full.thalia")
    assert thalia.diff(b, tmp_path / "full.thalia").same
    assert not thalia.delta(a, b, tmp_path / "plain.delta.thalia", pack=False).packed
    assert thalia.info(tmp_path / "plain.delta.thalia").wrapper is None
    assert thalia.delta(a, a, tmp_path / "nothing.delta.thalia").packed
    wrapper = thalia.info(tmp_path / "nothing.delta.thalia").wrapper
    assert wrapper is not None and wrapper.packed
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    os.rename(a, moved / "a.thalia")
    with pytest.raises(FileNotFoundError, match=r"a\.thalia"):
        thalia.open(delta)
    with thalia.open(delta, search=moved), thalia.open(delta, search=[moved]) as state:
        assert state.tensors["layers.0.bias"].shape == (300,)


def test_quantized_tensors_come_out_restored(files, tmp_path):
    a, _ = files
    out = tmp_path / "q.thalia"
    thalia.quantize(a, out, bits=8)
    with thalia.open(out) as file, thalia.open(a) as exact:
        tensor = file.tensors["layers.0.weight"]
        error = np.abs(tensor.numpy() - exact.tensors["layers.0.weight"].numpy()).max()
        assert 0 < error < 0.05 and tensor.encoding == "dense"
        np.testing.assert_array_equal(tensor[3:5, 7:9], tensor.numpy()[3:5, 7:9])
        for name in ("layers.0.bias", "optimizer.layers.0.weight.exp_avg_sq"):
            np.testing.assert_array_equal(file.tensors[name].numpy(), exact.tensors[name].numpy())


def test_convert_there_and_back(files, tmp_path):
    a, _ = files
    out = tmp_path / "a.safetensors"
    assert thalia.convert(a, out).tensors == 3
    assert set(load_file(out)) == set(load_file(a))
    back = tmp_path / "back.thalia"
    thalia.convert(out, back, precision="fp16", compression="plane_entropy")
    with thalia.open(back) as file:
        dtypes = {name: tensor.dtype for name, tensor in file.tensors.items()}
    assert dtypes["layers.0.weight"] == "f16"
    assert dtypes["optimizer.layers.0.weight.exp_avg_sq"] == "f32"


def test_a_file_of_another_format_comes_back(files, tmp_path):
    a, _ = files
    other = tmp_path / "a.mckp"
    thalia.convert(a, other)
    assert thalia.open(other).format == "mckp"
    thalia.convert(other, tmp_path / "back.thalia")
    assert len(thalia.open(tmp_path / "back.thalia").tensors) == 3


def test_merge_and_extract(files, tmp_path):
    a, _ = files
    with thalia.Writer(tmp_path / "c.thalia", durability="none") as writer:
        writer.add("other/w", np.zeros(3))
    merged = tmp_path / "m.thalia"
    thalia.merge([a, tmp_path / "c.thalia"], merged)
    with thalia.open(merged) as file:
        assert "other" in file and "layers.0" in file
    thalia.extract(merged, ["oth*"], tmp_path / "e.thalia")
    assert list(thalia.open(tmp_path / "e.thalia")) == ["other"]


def test_compress_and_decompress_are_exact(files, tmp_path):
    a, _ = files
    thalia.compress(a, tmp_path / "a.thalia.zst")
    thalia.decompress(tmp_path / "a.thalia.zst", tmp_path / "again.thalia")
    assert (tmp_path / "again.thalia").read_bytes() == a.read_bytes()
    with thalia.open(tmp_path / "a.thalia.zst") as file, thalia.open(a) as plain:
        for name, tensor in plain.tensors.items():
            np.testing.assert_array_equal(file.tensors[name].numpy(), tensor.numpy())


def test_salvage_gets_out_what_verifies(files, tmp_path):
    a, _ = files
    offset = thalia.open(a).tensors["layers.0.weight"]._source.offset
    data = bytearray(a.read_bytes())
    data[offset + 1000] ^= 1
    a.write_bytes(data)
    result = thalia.salvage(a, tmp_path / "s.thalia")
    assert len(result.lost) == 1
    with thalia.open(tmp_path / "s.thalia") as file:
        assert "layers.0.weight" not in file.tensors and len(file.tensors) == 2


def test_nothing_is_overwritten_behind_the_users_back(files, tmp_path):
    a, b = files
    before = b.read_bytes()
    calls = [
        lambda **o: thalia.convert(a, b, **o),
        lambda **o: thalia.quantize(a, b, **o),
        lambda **o: thalia.delta(a, a, b, **o),
        lambda **o: thalia.merge([a, a], b, **o),
        lambda **o: thalia.compress(a, b, compression="zstd", **o),
        lambda **o: thalia.salvage(a, b, **o),
        lambda **o: thalia.extract(a, ["layers.0"], b, **o),
    ]
    for call in calls:
        with pytest.raises(thalia.ExistsError):
            call()
        assert b.read_bytes() == before
    for call in (thalia.convert, thalia.quantize):
        with pytest.raises(thalia.UsageError, match="is read"):
            call(a, a, replace=True)
    thalia.convert(a, b, replace=True)
    assert thalia.diff(a, b).same


@pytest.mark.parametrize("codec", ["none", "zstd", "plane_entropy"])
@pytest.mark.parametrize(
    "write_anew",
    [
        lambda a, out, **o: thalia.salvage(a, out, **o),
        lambda a, out, **o: thalia.quantize(a, out, **o),
        lambda a, out, **o: thalia.convert(a, out, **o),
        lambda a, out, **o: thalia.merge([a], out, **o),
        lambda a, out, **o: thalia.extract(a, ["layers.0"], out, **o),
    ],
    ids=["salvage", "quantize", "convert", "merge", "extract"],
)
def test_progress_rises_to_its_total(write_anew, codec, tmp_path):
    source = write(tmp_path / "a.thalia", compression=codec)
    told = []
    write_anew(source, tmp_path / "out.thalia", progress=lambda done, total: told.append((done, total)))
    done, total = told[-1]
    assert done == total > 0
    assert [d for d, _ in told] == sorted({d for d, _ in told}) and {t for _, t in told} == {total}


def test_errors_of_sensitive_weights_count_more(files, tmp_path):
    a, _ = files
    for fisher in (tmp_path / "f.safetensors", tmp_path / "f.thalia"):
        sensitive = np.full((200, 300), 1e-3, np.float32)
        sensitive[:, :150] = 1.0
        save_file({"layers.0.weight": sensitive}, fisher)
        out = tmp_path / f"{fisher.suffix[1:]}.q.thalia"
        thalia.quantize(a, out, bits=4, group_size=8, sensitivity=fisher)
        with thalia.open(out) as file, thalia.open(a) as exact:
            error = np.abs(file.tensors["layers.0.weight"].numpy() - exact.tensors["layers.0.weight"].numpy())
        assert error[:, 152:].mean() > 4 * error[:, :144].mean()
    with pytest.raises(FileNotFoundError):
        thalia.quantize(a, tmp_path / "no.thalia", sensitivity=tmp_path / "nowhere.thalia")
    assert not (tmp_path / "no.thalia").exists()


@pytest.mark.parametrize("name", ["nowhere", "nowhere.thalia", "nowhere.bin", "nowhere.safetensors"])
def test_a_missing_file_is_a_missing_file_whatever_its_name(name, tmp_path):
    missing, out = tmp_path / name, tmp_path / "out.thalia"
    calls = [
        lambda: thalia.open(missing),
        lambda: thalia.info(missing),
        lambda: thalia.verify(missing),
        lambda: thalia.convert(missing, out),
        lambda: thalia.migrate(missing, out, to="1.0"),
        lambda: thalia.quantize(missing, out),
        lambda: thalia.merge([missing], out),
        lambda: thalia.extract(missing, ["*"], out),
        lambda: thalia.salvage(missing, out),
        lambda: thalia.delta(missing, missing, out),
        lambda: thalia.resolve(missing, out),
        lambda: thalia.diff(missing, missing),
        lambda: thalia.compress(missing, out, compression="zstd"),
        lambda: thalia.decompress(missing, out),
        lambda: thalia.recover(missing),
        lambda: thalia.compact(missing),
    ]
    for call in calls:
        with pytest.raises(FileNotFoundError, match="nowhere"):
            call()
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_a_conversion(tmp_path):
    source, out = tmp_path / "big.safetensors", tmp_path / "big.thalia"
    save_file({"w": np.random.default_rng(0).integers(0, 255, 64 << 20, np.uint8)}, source)
    begun = threading.Event()

    def interrupt():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        thalia.convert(
            source, out, compression="zstd", compression_level=19, threads=1, progress=lambda *_: begun.set()
        )
    thread.join()
    assert os.listdir(tmp_path) == [source.name]


def test_verify_says_what_no_checksum_covers(tmp_path):
    arrays = {"w": np.arange(6, dtype=np.float32)}
    for name, structure_only in ("a.thalia", False), ("a.safetensors", True):
        save_file(arrays, tmp_path / name)
        report = thalia.verify(tmp_path / name)
        assert report.ok and report.structure_only is structure_only
        assert report.tensors_compared == (0 if structure_only else 1)
        assert (report.bytes_checked == 0) is structure_only
        assert thalia.verify(tmp_path / name, quick=True).structure_only
    np.savez(tmp_path / "a.npz", **arrays)
    report = thalia.verify(tmp_path / "a.npz")
    assert not report.structure_only and report.bytes_checked == 24
    assert thalia.info(tmp_path / "a.npz").checksum.type == "crc32"


def test_a_policy_that_converts_nothing_warns(tmp_path):
    save_file({"layer.bias": np.zeros(4, np.float32)}, tmp_path / "a.thalia")
    with pytest.warns(UserWarning, match="the precision policy fp16 changed no tensor") as warned:
        result = thalia.convert(tmp_path / "a.thalia", tmp_path / "b.thalia", precision="fp16")
    assert {each.filename for each in warned} == {__file__}
    assert result.converted_tensors == 0 and len(result.warnings) == 1


def test_weights_that_are_packed_in_integers_are_counted(tmp_path):
    layer = {
        "q.qweight": np.zeros((8, 32), np.int32),
        "q.qzeros": np.zeros((2, 4), np.int32),
        "q.scales": np.zeros((2, 32), np.float16),
        "n.weight": np.zeros(8, np.float32),
    }
    save_file(layer, tmp_path / "a.safetensors")
    told = thalia.info(tmp_path / "a.safetensors")
    assert told.parameters == 64 * 32 + 8 and told.uncounted_tensors == 0


@pytest.mark.parametrize(
    "layer, known, uncounted",
    [
        ({"l.weight": ((128, 32), np.uint32), "l.scales": ((128, 4), "f2"), "l.biases": ((128, 4), "f2")}, 0, 1),  # MLX
        ({"l.W_q": ((256, 64), np.uint8), "l.scale": ((512, 1), "f2"), "l.zero": ((512, 1), "f2")}, 0, 1),  # HQQ
        ({"l.qzeros": ((2, 4), np.int32), "l.scales": ((2, 32), "f2"), "l.g_idx": ((64,), np.int32)}, 0, 0),  # a shard
        ({"l.weight": ((4, 4), "f4"), "l.scale": ((4,), "f4"), "l.biases": ((4,), "f4")}, 24, 0),  # nothing of these
    ],
)
def test_weights_whose_width_no_file_tells_are_said_to_be_uncounted(tmp_path, layer, known, uncounted):
    arrays = {name: np.zeros(shape, dtype) for name, (shape, dtype) in layer.items()}
    save_file({**arrays, "n.weight": np.zeros(8, np.float32)}, tmp_path / "a.safetensors")
    told = thalia.info(tmp_path / "a.safetensors")
    assert (told.parameters, told.uncounted_tensors) == (known + 8, uncounted)


def test_a_compressed_file_is_salvaged(files, tmp_path):
    a, _ = files
    thalia.compress(a, tmp_path / "a.thalia.zst")
    result = thalia.salvage(tmp_path / "a.thalia.zst", tmp_path / "s.thalia")
    assert not result.lost
    assert thalia.diff(a, tmp_path / "s.thalia").same


def test_a_file_without_a_checksum_has_those_of_its_tensors(tmp_path):
    save_file({"w": np.zeros(4, np.float32)}, tmp_path / "a.thalia", checksum="none")
    assert thalia.info(tmp_path / "a.thalia").checksum.type == "crc32"
    assert not thalia.verify(tmp_path / "a.thalia").structure_only
