"""Checkpoints of neural networks: memory-mapped reading, crash-safe writing.

    import thalia_checkpoint as thalia

    with thalia.Writer("model.thalia") as writer:
        writer.add("encoder/weight", weight)

    with thalia.open("model.thalia") as file:
        weight = file["encoder"]["weight"].numpy()    # in the mapping: nothing is copied
        rows = file["encoder/weight"][3:7]            # only these are read

docs/use/python.md is the manual. numpy is all that is needed; `thalia_checkpoint.torch` needs torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._library import missing_library as _missing_library

try:
    from ._core import __version__, detect_format, set_default_allocation_limit
except ImportError as _error:
    raise _missing_library(_error) from None
from ._files.any_file import AnyFile
from ._files.async_saver import AsyncSaver, SaveHandle
from ._files.file import Connection, File, Region, Tensors
from ._files.in_torch import TorchTensors as _TorchTensors
from ._files.in_torch import hand_in as _hand_in
from ._files.open import open
from ._files.safe_open import safe_open
from ._files.source import CooArrays, CsrArrays
from ._files.tensor import Tensor
from ._files.writer import SaveOptions, SaveResult, Writer
from ._objects.above import hand_in as _hand_in_objects
from .errors import (
    CancelledError,
    ExistsError,
    FormatError,
    IntegrityError,
    IoError,
    MissingFileError,
    NotFoundError,
    ThaliaError,
    UnsupportedError,
    UsageError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._files.serialize import TensorSpec, deserialize, serialize, serialize_file
    from ._objects.numpy_objects import load, save
    from ._operations.convert import (
        ConvertResult,
        MigrateResult,
        RoundedNumbers,
        Rounding,
        convert,
        extract,
        extract_brain,
        merge,
        migrate,
    )
    from ._operations.delta import (
        DeltaResult,
        LeftOutTensor,
        LoraAdapterResult,
        LowRank,
        LowRankMatrix,
        RebasedFile,
        RebaseResult,
        ResolveResult,
        WeightDeltaResult,
        delta,
        lora_adapter,
        rebase,
        resolve,
        weight_delta,
    )
    from ._operations.diff import ConnectionDiff, Diff, FieldDiff, RegionDiff, TensorDiff, TensorFacts, ValueDiff, diff
    from ._operations.edit import edit_safetensors_metadata
    from ._operations.info import ChecksumFacts, DeltaBase, DTypeTotal, Info, LossyFacts, WrapperFacts, info
    from ._operations.param_source import (
        ParamInfo,
        ParamResolver,
        ParamSource,
        ParamStatistics,
        base_param_id,
        param_key,
        stream_params,
    )
    from ._operations.quantize import QuantizedTensor, QuantizeResult, quantize
    from ._operations.repair import CompactResult, LostTensor, RecoverResult, SalvageResult, compact, recover, salvage
    from ._operations.verify import Finding, VerifyReport, verify
    from ._operations.wrap import WrapResult, compress, decompress
    from .store._follow import FollowedState, FollowedTensor, Follower, FollowUpdate
    from .store._publish import PublishedState, Publisher, PublishHandle, PublishWriter


def _torch_tensors() -> _TorchTensors:
    from .torch import _tensors

    return _tensors


def _torch_declare() -> Callable[..., Any]:
    from .torch._objects import declare

    return declare


def _load_folder() -> Callable[..., Any]:
    from .dcp._load import load_folder

    return load_folder


_hand_in(_torch_tensors)
_hand_in_objects(_torch_declare, _load_folder)

#: What code that was written for safetensors catches.
SafetensorError = ThaliaError

__all__ = [
    "AnyFile",
    "AsyncSaver",
    "CancelledError",
    "ChecksumFacts",
    "CompactResult",
    "Connection",
    "ConnectionDiff",
    "ConvertResult",
    "CooArrays",
    "CsrArrays",
    "DTypeTotal",
    "DeltaBase",
    "DeltaResult",
    "Diff",
    "ExistsError",
    "FieldDiff",
    "File",
    "Finding",
    "FollowUpdate",
    "FollowedState",
    "FollowedTensor",
    "Follower",
    "FormatError",
    "Info",
    "IntegrityError",
    "IoError",
    "LeftOutTensor",
    "LoraAdapterResult",
    "LossyFacts",
    "LostTensor",
    "LowRank",
    "LowRankMatrix",
    "MigrateResult",
    "MissingFileError",
    "NotFoundError",
    "ParamInfo",
    "ParamResolver",
    "ParamSource",
    "ParamStatistics",
    "PublishHandle",
    "PublishWriter",
    "PublishedState",
    "Publisher",
    "QuantizeResult",
    "QuantizedTensor",
    "RebaseResult",
    "RebasedFile",
    "RecoverResult",
    "Region",
    "RegionDiff",
    "ResolveResult",
    "RoundedNumbers",
    "Rounding",
    "SafetensorError",
    "SalvageResult",
    "SaveHandle",
    "SaveOptions",
    "SaveResult",
    "Tensor",
    "TensorDiff",
    "TensorFacts",
    "TensorSpec",
    "Tensors",
    "ThaliaError",
    "UnsupportedError",
    "UsageError",
    "ValueDiff",
    "VerifyReport",
    "WeightDeltaResult",
    "WrapResult",
    "WrapperFacts",
    "Writer",
    "__version__",
    "base_param_id",
    "compact",
    "compress",
    "convert",
    "decompress",
    "delta",
    "deserialize",
    "detect_format",
    "diff",
    "edit_safetensors_metadata",
    "extract",
    "extract_brain",
    "info",
    "load",
    "lora_adapter",
    "merge",
    "migrate",
    "open",
    "param_key",
    "quantize",
    "rebase",
    "recover",
    "resolve",
    "safe_open",
    "salvage",
    "save",
    "serialize",
    "serialize_file",
    "set_default_allocation_limit",
    "stream_params",
    "verify",
    "weight_delta",
]

if not TYPE_CHECKING:  # else each name would be one that is there
    #: Operations on whole files, which few programs use: importing them takes longer than all else.
    _LATER = (
        "_files.serialize",
        "_objects.numpy_objects",
        "_operations.convert",
        "_operations.delta",
        "_operations.diff",
        "_operations.edit",
        "_operations.info",
        "_operations.param_source",
        "_operations.quantize",
        "_operations.repair",
        "_operations.verify",
        "_operations.wrap",
        "store._follow",
        "store._publish",
    )

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        for module in _LATER:
            found = importlib.import_module(f".{module}", __name__)
            globals().update({each: getattr(found, each) for each in found.__all__})
        return globals()[name]

    def __dir__():
        return __all__
