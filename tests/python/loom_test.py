"""Networks of Loom: files as the original writes them, layers that are changed, Morph."""

import copy
import dataclasses
import json
import pickle
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.loom as loom

VECTORS = Path(__file__).parents[1] / "data/formats/loom"
DTYPES = [path.name.split(".")[0] for path in sorted((VECTORS / "dtype").glob("*.expected.json"))]


def dense(dtype="float32", weights=None, **more):
    layer = loom.Layer(type="Dense", dtype=dtype, input_height=4, output_height=3, **more)
    layer.set_master(np.linspace(-1, 1, 12, dtype=np.float32) if weights is None else weights)
    return layer


def nested():
    """Every kind of part that a network has."""
    parallel = loom.Layer(
        type="Parallel", combine_mode="add", parallel_branches=[dense("int8"), dense("binary")], use_tiling=True
    )
    attention = loom.Layer(type="MultiHeadAttention", d_model=4, num_heads=2, rope_freq_base=1e4, seq_length=1)
    attention.num_kv_heads, attention.head_dim, attention.query_dim = 2, 2, 4  # what Loom would fill in
    attention.components = [loom.Component("q_norm", "float32", np.frombuffer(np.float32([1, 2]).tobytes(), np.uint8))]
    observing = loom.Layer(
        type="Metacognition",
        meta_rules=[loom.MetaRule(1, 0.5, 2.0, 3.0, 4, True)],
        meta_observed_layer=dense("fp4"),
        softmax_type="Entmax",
        entmax_alpha=1.5,
    )
    transformer = loom.Transformer(
        architecture="llama_style_decoder",
        hidden_size=4,
        vocab_size=2,
        lm_head_tied=True,
        has_final_norm=True,
        weight_dtype="float32",
        dims=loom.TransformerDims(num_layers=1, num_heads=2, rms_norm_eps=1e-5, activation="Silu"),
        embeddings=np.arange(8, dtype=np.float32),
        final_norm=np.ones(4, np.float32),
    )
    return loom.Network(1, 1, 2, 2, [dense("int4"), parallel, attention, observing], transformer)


def same(a, b):
    """Of what dataclasses hold, arrays too."""
    assert type(a) is type(b)
    if dataclasses.is_dataclass(a):
        for one in dataclasses.fields(a):
            same(getattr(a, one.name), getattr(b, one.name))
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, list):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    else:
        assert a == b


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_file_of_the_original_is_read_and_written_as_it_is(tmp_path, dtype):
    text = (VECTORS / f"dtype/{dtype}.json").read_text()
    network = loom.load(VECTORS / f"dtype/{dtype}.json")
    assert loom.to_json(network) == text == loom.to_json(loom.parse_json(text))
    loom.save_json(tmp_path / "a.json", network)
    assert (tmp_path / "a.json").read_text() == text
    entity = (VECTORS / f"dtype/{dtype}.entity").read_bytes()
    read = loom.load(VECTORS / f"dtype/{dtype}.entity")
    assert loom.to_entity(read) == entity
    assert loom.save_entity(tmp_path / "a.entity", read) == len(entity)
    assert (tmp_path / "a.entity").read_bytes() == entity
    # Morph gives the same from the weights.
    (layer,) = network.layers
    expected = json.loads((VECTORS / f"dtype/{dtype}.expected.json").read_text())
    assert layer.weights.dtype == dtype == layer.dtype and expected
    np.testing.assert_array_equal(
        loom.unpack(layer.weights.native, dtype, layer.weights.scale, layer.weight_count), layer.master()
    )
    np.testing.assert_array_equal(loom.encode(layer.weights.elements, dtype), layer.weights.native)


def test_a_network_of_all_parts_comes_back(tmp_path):
    network = nested()
    loom.save_entity(tmp_path / "a.entity", network)
    file = loom.EntityFile(tmp_path / "a.entity")
    back = file.network()
    assert loom.to_entity(back) == (tmp_path / "a.entity").read_bytes()
    assert [blob.path for blob in file.blobs] == [
        "layers.0",
        "layers.1.parallel_branches.0",
        "layers.1.parallel_branches.1",
        "layers.2.q_norm",
        "layers.3.meta_observed_layer",
        "transformer.embeddings",
        "transformer.final_norm",
    ]
    same(back.transformer, network.transformer)
    same(back.layers[3].meta_rules, network.layers[3].meta_rules)
    assert back.layers[1].use_tiling and back.layers[3].entmax_alpha == 1.5 and back.layers[2].rope_freq_base == 1e4
    np.testing.assert_array_equal(back.layers[2].components[0].array(), [1, 2])
    for stored, given in zip(back.layers[1].parallel_branches, network.layers[1].parallel_branches, strict=True):
        np.testing.assert_array_equal(stored.weights.native, given.weights.native)
    assert set(np.abs(back.layers[1].parallel_branches[1].master())) == {np.float32(6 / 11)}
    assert "1x1x2x2" in repr(back) and "a transformer" in repr(back)
    assert "2 layers within" in repr(back.layers[1]) and "int4" in repr(back.layers[0])
    assert file.header().layers[0].weights is None and file.file_bytes == file.blobs[-1].offset + 16
    assert "7 blobs" in repr(file) and file.unknown_keys == []
    same(pickle.loads(pickle.dumps(back)), back)
    same(copy.deepcopy(back), back)


def test_one_layer_is_loaded_by_itself(tmp_path):
    loom.save_entity(tmp_path / "a.entity", nested())
    file = loom.EntityFile(tmp_path / "a.entity")
    network = file.network(layers=[1, 99])
    assert network.layers[0].weights is None and network.layers[0].input_height == 4 and len(network.layers) == 4
    assert [each.weights.dtype for each in network.layers[1].parallel_branches] == ["int8", "binary"]
    weights = file.layer_weights(0)
    assert weights.dtype == "int4" and weights.native.nbytes == 6
    with pytest.raises(thalia.NotFoundError, match="blob"):
        file.layer_weights(1)
    with pytest.raises(thalia.NotFoundError):
        file.blob(7)
    # Nothing is copied: both look at the same pages, which outlive the file object.
    again = file.blob(0)
    assert again.ctypes.data == weights.native.ctypes.data and not again.flags.writeable
    expected = again.tobytes()
    del file, network
    assert weights.native.tobytes() == expected
    # A part of another file.
    data = (tmp_path / "a.entity").read_bytes()
    (tmp_path / "within").write_bytes(b"abc" + data + b"def")
    within = loom.EntityFile(tmp_path / "within", offset=3, length=len(data))
    np.testing.assert_array_equal(within.transformer().embeddings, np.arange(8, dtype=np.float32))
    assert loom.to_entity(within.network()) == data
    with pytest.raises(thalia.UsageError, match="section"):
        loom.EntityFile(tmp_path / "within", offset=1 << 40)


def test_a_layer_that_was_changed_is_packed_anew(tmp_path):
    network = loom.Network(1, 1, 1, 1, [dense("int8")])
    before = network.layers[0].master()
    network.layers[0].set_master(before * 2)
    loom.save_entity(tmp_path / "a.entity", network)
    (layer,) = loom.load(tmp_path / "a.entity").layers
    np.testing.assert_allclose(layer.master(), before * 2, atol=layer.weights.scale)
    packed, scale = loom.morph(before * 2, "int8")
    np.testing.assert_array_equal(layer.weights.native, packed)
    assert layer.weights.scale == scale
    # Weights that are f32 alone are packed by the save.
    layer.weights = loom.Weights("int8", master=before)
    loom.save_entity(tmp_path / "a.entity", loom.Network(1, 1, 1, 1, [layer]), replace=True)
    np.testing.assert_array_equal(
        loom.load(tmp_path / "a.entity").layers[0].weights.native, loom.morph(before, "int8").packed
    )
    # float32 is what it was, bit for bit.
    layer.dtype = "float32"
    layer.set_master(before)
    np.testing.assert_array_equal(layer.master().view(np.uint32), before.view(np.uint32))


def test_morph_is_the_originals():
    packed, scale = loom.morph([0.5, -0.25, 0.1], "int4")
    assert packed.tobytes() == bytes([0x7D, 0x10]) and scale == np.float32(0.5) / np.float32(7)
    np.testing.assert_allclose(loom.unpack(packed, "int4", scale, 3), [0.5, -0.2142857, 0.0714286], rtol=1e-6)
    assert loom.unpack(packed.tobytes(), "INT4", scale).shape == (4,)
    assert loom.decode(bytes([0b10000001]), "binary").tolist() == [1, -1, -1, -1, -1, -1, -1, 1]
    assert loom.decode(bytes([0x8F]), "int4").tolist() == [-8, -1]
    assert loom.encode(np.int8([-8, -1]), "i8").tobytes() == bytes([0xF8, 0xFF])
    assert loom.morph(np.zeros(0), "float64").packed.size == 0
    with pytest.raises(thalia.UsageError, match="ternary, binary"):
        loom.morph([1.0], "int3")
    with pytest.raises(thalia.UsageError, match="elements"):
        loom.encode(np.float32([1]), "int8")
    with pytest.raises(thalia.UsageError, match="uint8"):
        loom.decode(np.float32([1]), "int8")
    with pytest.raises(thalia.UsageError):
        loom.unpack(bytes(1), "int8", 1.0, 2)
    with pytest.raises((ValueError, TypeError)):
        loom.morph(["text"], "int8")
    array = np.float32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(loom.unpack(*[loom.morph(array.T, "float32").packed, "float32", 1.0]), [1, 3, 2, 4])


def test_an_architecture_has_no_weights():
    text = (VECTORS / "arch/SwiGLU.json").read_text()
    network = loom.build(text)
    assert network.layers[0].type == "SwiGLU" and network.layers[0].weights is None
    assert network.layers[0].master().size == 0 and network.layers[0].weight_count > 0
    with pytest.raises(thalia.FormatError):
        loom.build("{")


def test_what_is_no_network(tmp_path):
    network = nested()

    def refused(error, match, change):
        changed = copy.deepcopy(network)
        change(changed)
        with pytest.raises(error, match=match):
            loom.save_entity(tmp_path / "a.entity", changed)
        assert not (tmp_path / "a.entity").exists()

    refused(TypeError, "input_height", lambda n: setattr(n.layers[0], "input_height", "4"))
    refused(TypeError, "input_height", lambda n: setattr(n.layers[0], "input_height", 1 << 63))
    refused(TypeError, "use_tiling", lambda n: setattr(n.layers[0], "use_tiling", "x"))
    refused(thalia.UsageError, "type", lambda n: setattr(n.layers[0], "type", "Densest"))
    refused(thalia.UsageError, "dtype", lambda n: setattr(n.layers[0], "dtype", "float"))
    refused(thalia.UsageError, "activation", lambda n: setattr(n.layers[0], "activation", "Swish"))
    refused(thalia.UsageError, "layers", lambda n: n.layers.pop())
    refused(thalia.UsageError, "each other", lambda n: n.layers[0].sequential_layers.append(n.layers[0]))
    refused(thalia.ThaliaError, ".", lambda n: setattr(n.layers[0], "kmeans_temperature", float("nan")))
    refused(AttributeError, ".", lambda n: n.layers.__setitem__(0, None))
    refused(TypeError, ".", lambda n: setattr(n, "layers", None))
    refused((TypeError, BufferError), ".", lambda n: setattr(n.layers[0].weights, "native", 5))
    with pytest.raises(thalia.UnsupportedError, match="q_norm"):
        loom.to_json(network)
    with pytest.raises(thalia.UsageError, match="expected 4"):
        loom.Layer(type="Dense", input_height=2, output_height=2).set_master([1.0])
    with pytest.raises(TypeError, match="did you mean 'replace'"):
        loom.save_entity(tmp_path / "a.entity", network, replac=True)
    loom.save_entity(tmp_path / "a.entity", network)
    with pytest.raises(thalia.UsageError, match="already"):
        loom.save_entity(tmp_path / "a.entity", network)
    with pytest.raises(thalia.NotFoundError):
        path = tmp_path / "b.entity"
        loom.save_entity(path, loom.Network(1, 1, 1, 1, [dense()]))
        loom.EntityFile(path).transformer()
    with pytest.raises(thalia.UsageError, match="native"):
        _ = loom.Weights().elements


def test_damaged_files_are_refused_or_read(tmp_path):
    loom.save_entity(tmp_path / "a.entity", nested())
    data = (tmp_path / "a.entity").read_bytes()
    damaged = tmp_path / "d.entity"
    for size in (0, 7, 19, 20, len(data) // 2, len(data) - 1):
        damaged.write_bytes(data[:size])
        with pytest.raises(thalia.ThaliaError):
            loom.EntityFile(damaged).network()
    rng = np.random.default_rng(0)
    for _ in range(200):
        changed = bytearray(data)
        for at in rng.integers(0, len(data), 3):
            changed[at] = rng.integers(0, 256)
        damaged.write_bytes(changed)
        try:
            network = loom.EntityFile(damaged).network()
            for layer in network.layers:
                layer.master()
                [each.array() for each in layer.components]
        except (thalia.ThaliaError, ValueError):
            continue
    damaged.write_bytes(data[:12] + struct.pack("<Q", 1 << 63) + data[20:])
    with pytest.raises(thalia.FormatError, match="header"):
        loom.EntityFile(damaged)
    with pytest.raises(thalia.MissingFileError):
        loom.load(tmp_path / "none.entity")
    with pytest.raises(thalia.FormatError):
        loom.parse_json("\ud800")
    (tmp_path / "text.json").write_text("no json")
    with pytest.raises(thalia.FormatError):
        loom.load(tmp_path / "text.json")


def test_threads_read_one_file_and_write_one_network(tmp_path):
    network = nested()
    loom.save_entity(tmp_path / "a.entity", network)
    file = loom.EntityFile(tmp_path / "a.entity")
    data, started = (tmp_path / "a.entity").read_bytes(), threading.Barrier(4)

    def work(number):
        started.wait(60)
        for _ in range(20):
            assert loom.to_entity(file.network()) == data
            loom.save_entity(tmp_path / f"{number}.entity", network, replace=True)
        return (tmp_path / f"{number}.entity").read_bytes() == data

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_blocks_of_transformers_are_decoded():
    scales, words = np.float32([0.5]), np.zeros(512, np.uint32)
    words.view(np.uint8)[:2] = [0x2F, 0x87]
    blob = struct.pack("<II", 1, 512) + scales.tobytes() + words.tobytes()
    component = loom.Component("q4_0.200", "Q4_0", np.frombuffer(blob, np.uint8), native=True)
    assert component.array()[:4].tolist() == [-0.5, 1.0, 3.5, -4.0] and component.array().size == 32
    matrix = struct.pack("<IIIfII", 1, 3, 0, 2.0, 1, 1) + struct.pack("<I", 0b100100)
    component = loom.Component("bitnet_ternary.10000", "BITNET_TERNARY", np.frombuffer(matrix, np.uint8), native=True)
    assert component.array().tolist() == [[-2.0, 0.0, 2.0]]
    with pytest.raises(thalia.FormatError):
        loom.Component("q4_0.200", "Q4_0", np.frombuffer(blob[:9], np.uint8)).array()
