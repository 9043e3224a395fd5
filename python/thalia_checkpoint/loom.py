"""Networks of Loom: .entity files and JSON checkpoints, layer by layer, and how Loom packs weights.

    import thalia_checkpoint.loom as loom

    with_weights = loom.EntityFile("model.entity").network(layers=[3])   # one layer's blobs are read
    weights = with_weights.layers[3].master()                            # f32, whatever is stored
    network = loom.load("model.entity")
    network.layers[3].set_master(weights * 0.5)                          # packed anew, as Loom does
    loom.save_entity("half.entity", network)

Layers and networks are plain objects with the names that files have: they can be changed, copied and
pickled. What lies in a file is not copied. docs/format/loom.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import EntityBlob
from ._html import of_rows
from ._keywords import suggests
from .errors import UsageError, make_error

if TYPE_CHECKING:
    from ._types import Path

    Bytes = npt.NDArray[np.uint8]
    Floats = npt.NDArray[np.float32]

__all__ = [
    "Component",
    "EntityBlob",
    "EntityFile",
    "Layer",
    "MetaRule",
    "Morphed",
    "Network",
    "Transformer",
    "TransformerDims",
    "Weights",
    "build",
    "decode",
    "encode",
    "load",
    "morph",
    "parse_json",
    "save_entity",
    "save_json",
    "to_entity",
    "to_json",
    "unpack",
]

#: The element types, as numpy has them once they are decoded. Those of less than 16 bits are codes.
_ELEMENTS = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "int64": np.int64,
    "int32": np.int32,
    "int16": np.int16,
    "uint64": np.uint64,
    "uint32": np.uint32,
    "uint16": np.uint16,
    "bfloat16": np.uint16,
    "int8": np.int8,
    "int4": np.int8,
    "int2": np.int8,
    "ternary": np.int8,
    "binary": np.int8,
}


def _array(buffer: Any, dtype: Any) -> npt.NDArray[Any]:
    """What the library handed out: nothing is copied. A part of an element at the end counts for nothing."""
    dtype = np.dtype(dtype)
    found: npt.NDArray[Any] = np.frombuffer(buffer, dtype, len(buffer) // dtype.itemsize)
    return found


def _bytes(buffer: Any) -> Bytes | None:
    return None if buffer is None else _array(buffer, np.uint8)


def _floats(buffer: Any) -> Floats | None:
    return None if buffer is None else _array(buffer, np.float32)


def _as_floats(array: Any) -> Floats:
    return np.ascontiguousarray(array, np.float32).reshape(-1)


@dataclass(eq=False)
class Weights:
    """The weights of a layer: packed, or f32 that are packed when they are saved, or both."""

    dtype: str = "float32"
    """What `native` is packed as, or what `master` becomes: one of Loom's 21 types."""
    scale: float = 1.0
    """Exactly 1, with f32 weights alone: computed from these when they are packed."""
    native: Bytes | None = None
    """Packed; of a file, its own bytes, read-only."""
    master: Floats | None = None
    """f32; None if they are to be had from `native`."""

    @property
    def elements(self) -> npt.NDArray[Any]:
        """The packed elements by themselves, as decode() gives them. Raises UsageError if there are none."""
        if self.native is None:
            raise _wrong("native", "None", "packed weights")
        return decode(self.native, self.dtype)


@dataclass(eq=False)
class Component:
    """A part of a layer in a .entity file, beside its weights or in place of them."""

    suffix: str
    """After the layer's path: "q_norm", "biases", "q4_0.200", "bitnet_ternary.10000"."""
    dtype: str
    """As the file spells it."""
    bytes: Bytes
    scale: float = 0.0
    native: bool = False

    def array(self) -> Floats:
        """The f32 weights that it stands for; of a BitNet matrix with its shape. Raises FormatError."""
        if self.suffix.startswith("q4_0."):
            return _array(_core.loom_q4_0(self.bytes, None), np.float32)
        if self.suffix.startswith("bitnet_ternary."):
            rows, cols, weights = _core.loom_bitnet(self.bytes)
            return _array(weights, np.float32).reshape(rows, cols)
        if self.native:
            return unpack(self.bytes, self.dtype, self.scale)
        return self.bytes.view(np.float32)


@dataclass
class MetaRule:
    """A rule of a Metacognition layer."""

    condition: int = 0
    threshold: float = 0.0
    command: float = 0.0
    param: float = 0.0
    cooldown: int = 0
    self_only: bool = False


@dataclass(eq=False)
class Layer:
    """A layer with its settings, under the names that files have: 0, False and "" are not written."""

    type: str = "Dense"
    activation: str = "Linear"
    dtype: str = "float32"
    z: int = 0
    y: int = 0
    x: int = 0
    l: int = 0  # noqa: E741
    input_height: int = 0
    input_width: int = 0
    input_depth: int = 0
    output_height: int = 0
    output_width: int = 0
    output_depth: int = 0
    input_channels: int = 0
    filters: int = 0
    kernel_size: int = 0
    stride: int = 0
    padding: int = 0
    output_padding: int = 0
    num_heads: int = 0
    num_kv_heads: int = 0
    head_dim: int = 0
    query_dim: int = 0
    d_model: int = 0
    seq_length: int = 0
    rope_freq_base: float = 0.0
    vocab_size: int = 0
    embedding_dim: int = 0
    num_clusters: int = 0
    kmeans_temperature: float = 0.0
    output_mode: str = ""
    softmax_type: str = "Standard"
    temperature: float = 0.0
    softmax_rows: int = 0
    softmax_cols: int = 0
    entmax_alpha: float = 0.0
    gumbel_noise: bool = False
    use_tiling: bool = False
    tile_size: int = 0
    is_disabled: bool = False
    combine_mode: str = ""
    weights: Weights | None = None
    components: list[Component] = field(default_factory=list)
    parallel_branches: list[Layer] = field(default_factory=list)
    sequential_layers: list[Layer] = field(default_factory=list)
    meta_rules: list[MetaRule] = field(default_factory=list)
    meta_observed_layer: Layer | None = None

    @property
    def weight_count(self) -> int | None:
        """Weights that a layer of these settings has: 0 for types without any; None where they have no
        number. Raises UsageError, TypeError for a setting that cannot be."""
        return _core.loom_weight_count(self)

    def master(self) -> Floats:
        """The f32 weights of the layer, `weight_count` of them, from what it has; its own array, and empty
        for a layer without weights. Components do not count. Raises FormatError where there are fewer."""
        return _array(_core.loom_master(self), np.float32)

    def set_master(self, array: npt.ArrayLike, scale: float = 1.0) -> None:
        """Packs weights as the layer's `dtype`, as Loom's Morph does: `weights` is then what is saved. Until
        then master() still gives the weights as they were given.

        scale: 1: computed from the weights. Raises UsageError unless there are `weight_count` of them.
        """
        self.weights = _weights(_core.loom_with_master(self, _as_floats(array), scale))

    def __repr__(self) -> str:
        packed = "without weights" if self.weights is None else f"{self.weights.dtype} weights"
        parts = len(self.parallel_branches) + len(self.sequential_layers) + (self.meta_observed_layer is not None)
        within = f", {parts} layers within" if parts else ""
        more = f", {len(self.components)} components" if self.components else ""
        return f"<Layer: {self.type}, {packed}{more}{within}>"


@dataclass
class TransformerDims:
    """The sizes of a decoder."""

    num_layers: int = 0
    num_heads: int = 0
    num_kv_heads: int = 0
    head_dim: int = 0
    query_dim: int = 0
    kv_dim: int = 0
    intermediate_size: int = 0
    rms_norm_eps: float = 0.0
    rope_freq_base: float = 0.0
    activation: str = ""


@dataclass(eq=False)
class Transformer:
    """What a .entity file of a transformer has besides its layers. Arrays are flat f32."""

    architecture: str = "unknown"
    """ "llama_style_decoder" or "unknown"."""
    hidden_size: int = 0
    vocab_size: int = 0
    lm_head_tied: bool = False
    has_final_norm: bool = False
    weight_dtype: str = ""
    dims: TransformerDims | None = None
    embeddings: Floats | None = None
    lm_head: Floats | None = None
    final_norm: Floats | None = None


@dataclass(eq=False)
class Network:
    """A grid of layers: layer l of cell (z, y, x) at ((z*rows + y)*cols + x)*layers_per_cell + l."""

    depth: int = 1
    rows: int = 1
    cols: int = 1
    layers_per_cell: int = 0
    layers: list[Layer] = field(default_factory=list)
    transformer: Transformer | None = None

    def __repr__(self) -> str:
        grid = f"{self.depth}x{self.rows}x{self.cols}x{self.layers_per_cell}"
        return f"<Network: {grid}, {len(self.layers)} layers{', a transformer' if self.transformer else ''}>"

    def _repr_html_(self) -> str:
        return _table(repr(self)[1:-1], self)


def _table(title: str, network: Network) -> str:
    heads = ("z", "y", "x", "l", "type", "activation", "dtype")
    return of_rows(title, heads, [[getattr(layer, head) for head in heads] for layer in network.layers])


def _weights(found: dict[str, Any]) -> Weights:
    return Weights(found["dtype"], found["scale"], _bytes(found["native"]), _floats(found["master"]))


def _layer(found: dict[str, Any]) -> Layer:
    layer = Layer(**found)
    layer.weights = None if found["weights"] is None else _weights(found["weights"])
    layer.components = [Component(**{**each, "bytes": _array(each["bytes"], np.uint8)}) for each in found["components"]]
    layer.parallel_branches = [_layer(each) for each in found["parallel_branches"]]
    layer.sequential_layers = [_layer(each) for each in found["sequential_layers"]]
    layer.meta_rules = [MetaRule(**each) for each in found["meta_rules"]]
    observed = found["meta_observed_layer"]
    layer.meta_observed_layer = None if observed is None else _layer(observed)
    return layer


def _transformer(found: dict[str, Any]) -> Transformer:
    arrays = {name: _floats(found[name]) for name in ("embeddings", "lm_head", "final_norm")}
    dims = None if found["dims"] is None else TransformerDims(**found["dims"])
    return Transformer(**{**found, **arrays, "dims": dims})


def _network(found: dict[str, Any]) -> Network:
    network = Network(**found)
    network.layers = [_layer(each) for each in found["layers"]]
    network.transformer = None if found["transformer"] is None else _transformer(found["transformer"])
    return network


@suggests
class EntityFile:
    """An open .entity file. Opening reads what comes before the blobs, and a call the blobs that it is
    about. There are no checksums. Immutable; any number of threads.
    """

    def __init__(self, path: Path, *, access: str = "mapped", offset: int = 0, length: int | None = None) -> None:
        """access: as of thalia_checkpoint.open(). offset, length: the part of the file that it is.

        Raises IoError; FormatError naming field and bound; UnsupportedError for another version; UsageError
        for a part that the file does not have.
        """
        self._raw = _core.EntityFile.open(path, access, offset, length)
        self.path: str = os.fspath(path)
        self.blobs: tuple[EntityBlob, ...] = self._raw.blobs
        """In the order of the file."""

    @property
    def file_bytes(self) -> int:
        """The size of the file, or of the part."""
        return self._raw.file_bytes

    @property
    def unknown_keys(self) -> list[str]:
        """Some of the header's keys that mean nothing to the format; they are passed over."""
        return self._raw.unknown_keys

    def header(self) -> Network:
        """The network as the header describes it: nothing filled in, no weights."""
        return _network(self._raw.header())

    def network(self, layers: Iterable[int] | None = None) -> Network:
        """What Loom's loader makes of the file.

        layers: numbers of the only ones, with all that is in them, that get their weights: no other blob is
        read. A number that no layer has counts for nothing. None: all, and what a transformer has besides.

        Raises FormatError, UnsupportedError, IoError.
        """
        return _network(self._raw.network(None if layers is None else list(layers)))

    def layer_weights(self, layer: int) -> Weights:
        """The weights of the blob "layers.I". Raises NotFoundError; FormatError, IoError."""
        return _weights(self._raw.layer_weights(layer))

    def transformer(self) -> Transformer:
        """What a transformer has besides its layers. Raises NotFoundError if the file is not a transformer's;
        FormatError where embeddings, or a head or a norm that it announces, are missing."""
        return _transformer(self._raw.transformer())

    def blob(self, number: int) -> Bytes:
        """The bytes of blobs[number] as they are stored: nothing is copied. Raises NotFoundError, IoError."""
        return _array(self._raw.blob(number), np.uint8)

    def __repr__(self) -> str:
        return f"<EntityFile '{_core.printable(self.path)}': {len(self.blobs)} blobs>"

    def _repr_html_(self) -> str:
        return _table(repr(self)[1:-1], self.header())


def load(path: Path) -> Network:
    """The network of a .entity file, or of a JSON checkpoint of Loom. Raises IoError, FormatError,
    UnsupportedError."""
    if _core.detect_format(path) == "entity":
        return EntityFile(path).network()
    return _network(_core.loom_load_json(path))


def parse_json(text: str) -> Network:
    """The network of the text of a JSON checkpoint. Raises FormatError."""
    return _network(_core.loom_parse_json(text))


def build(text: str) -> Network:
    """The network that a JSON text of an architecture describes, with Loom's defaults and without weights,
    which Loom makes up at random. Raises FormatError."""
    return _network(_core.loom_build(text))


@suggests
def save_entity(path: Path, network: Network, *, replace: bool = False) -> int:
    """Writes a .entity file as Loom does, atomically; components are written as they are.

    Returns its bytes. Raises UsageError for layers that are not the grid's, settings that cannot be, and a
    file that is there already unless `replace`; TypeError; FormatError; IoError.
    """
    return _core.loom_save(path, network, "entity", replace, False)


@suggests
def save_json(path: Path, network: Network, *, replace: bool = False, scale_before_morph: bool = False) -> int:
    """Writes a JSON checkpoint as Loom does, atomically.

    scale_before_morph: weights that were never packed are written with the scale from before, as Loom's
        first save does. Reading them back gives other weights.

    Returns its bytes. Raises as save_entity(); UnsupportedError for components, which only .entity files
    have.
    """
    return _core.loom_save(path, network, "json", replace, scale_before_morph)


def to_entity(network: Network) -> bytes:
    """The bytes of a .entity file. Raises as save_entity()."""
    return bytes(memoryview(_core.loom_entity_bytes(network)))


@suggests
def to_json(network: Network, *, scale_before_morph: bool = False) -> str:
    """The text of a JSON checkpoint. Raises as save_json()."""
    return _core.loom_json(network, scale_before_morph)


class Morphed(NamedTuple):
    """What morph() makes of weights."""

    packed: Bytes
    scale: float


def morph(array: npt.ArrayLike, dtype: str, scale: float = 1.0) -> Morphed:
    """Packs f32 weights as one of Loom's 21 types ("Morph").

    scale: exactly 1 counts as none, and is computed from the weights. Raises UsageError for another type.
    """
    packed, used = _core.loom_morph(dtype, _as_floats(array), scale)
    return Morphed(_array(packed, np.uint8), used)


def unpack(packed: npt.ArrayLike, dtype: str, scale: float, count: int | None = None) -> Floats:
    """The f32 weights that packed bytes stand for ("Unpack"): the first `count` of them; None: all that there
    are, with what fills the last byte. Raises UsageError if there are less."""
    data = _raw(packed)
    if count is None:
        count = _core.loom_element_count(dtype, data.nbytes)
    return _array(_core.loom_unpack(dtype, data, scale, count), np.float32)


def decode(packed: npt.ArrayLike, dtype: str) -> npt.NDArray[Any]:
    """The elements of packed bytes by themselves, without their scale: floats, integers, or codes of small
    floats; bfloat16 as its 16 bits. Types of less than a byte fill their last one. Raises UsageError."""
    return _array(_core.loom_decode(dtype, _raw(packed)), _element_type(dtype))


def encode(elements: npt.ArrayLike, dtype: str) -> Bytes:
    """The inverse of decode(). Raises UsageError for elements of another type."""
    array = np.ascontiguousarray(elements)
    expected = _element_type(dtype)
    if array.dtype != expected:
        raise _wrong("elements", str(array.dtype), str(expected))
    return _array(_core.loom_encode(dtype, array), np.uint8)


def _element_type(dtype: str) -> np.dtype[Any]:
    return np.dtype(_ELEMENTS.get(_core.loom_dtype(dtype), np.uint8))


def _raw(packed: npt.ArrayLike) -> Bytes:
    data = np.frombuffer(packed, np.uint8) if isinstance(packed, bytes | bytearray) else np.asarray(packed)
    if data.dtype != np.uint8:
        raise _wrong("packed", str(data.dtype), "uint8")
    return np.ascontiguousarray(data)


def _wrong(name: str, value: str, expected: str) -> Exception:
    text = f"{name} {value}; expected {expected}"
    return make_error(UsageError, text, "bad_argument", field=name, value=value, expected=expected)
