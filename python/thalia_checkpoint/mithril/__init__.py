"""Checkpoints under keys, each as a difference to a previous one: mithril's API.

    import thalia_checkpoint.mithril as ckpt

    compressor = ckpt.Compressor(storage="local:///tmp/checkpoints")
    meta = compressor.save(model.state_dict(), key="step_1000", previous_key="step_900")
    print(f"{meta.original_size} -> {meta.compressed_size} ({meta.ratio:.1f}x)")
    model.load_state_dict(compressor.load("step_1000"))

What is stored are MCKP files, docs/format/mckp.md. No pickle is read or written. The planners of
torch.distributed.checkpoint are in thalia_checkpoint.mithril.torch.
"""

from __future__ import annotations

from .._core import CheckpointMeta
from .._operations.delta import LowRank
from ._bytes import ByteGrouper, DeltaEncoder
from ._compressor import CompressedCheckpoint, Compressor, CompressorConfig
from ._quantization import AdaptiveQuantizer, QuantizationConfig, QuantizedTensor
from ._storage import StorageBackend

__all__ = [
    "AdaptiveQuantizer",
    "ByteGrouper",
    "CheckpointMeta",
    "CompressedCheckpoint",
    "Compressor",
    "CompressorConfig",
    "DeltaEncoder",
    "LowRank",
    "QuantizationConfig",
    "QuantizedTensor",
    "StorageBackend",
]
