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

from typing import TYPE_CHECKING

from ._any_file import AnyFile
from ._core import __version__, detect_format, set_default_allocation_limit
from ._file import Connection, File, FlatFile, Region, SafetensorsFile, Tensors
from ._safe_open import safe_open
from ._shards import ShardedFile, open
from ._tensor import CooArrays, CsrArrays, Tensor
from ._writer import AsyncSaver, SaveHandle, SaveOptions, SaveResult, Writer
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
    from ._convert import (
        ConvertResult,
        MigrateResult,
        RoundedNumbers,
        Rounding,
        convert,
        extract,
        merge,
        migrate,
    )
    from ._delta import DeltaResult, LowRank, LowRankMatrix, ResolveResult, delta, resolve
    from ._diff import (
        ConnectionDiff,
        Diff,
        FieldDiff,
        RegionDiff,
        TensorDiff,
        TensorFacts,
        ValueDiff,
        diff,
    )
    from ._edit import edit_safetensors_metadata
    from ._info import (
        ChecksumFacts,
        DeltaBase,
        DTypeTotal,
        Info,
        LossyFacts,
        WrapperFacts,
        info,
    )
    from ._param_source import ParamInfo, ParamSource, ParamStatistics, stream_params
    from ._quantize import QuantizedTensor, QuantizeResult, quantize
    from ._repair import (
        CompactResult,
        LostTensor,
        RecoverResult,
        SalvageResult,
        compact,
        recover,
        salvage,
    )
    from ._serialize import TensorSpec, deserialize, serialize, serialize_file
    from ._verify import Finding, VerifyReport, verify
    from ._wrap import WrapResult, compress, decompress

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
    "FlatFile",
    "FormatError",
    "Info",
    "IntegrityError",
    "IoError",
    "LossyFacts",
    "LostTensor",
    "LowRank",
    "LowRankMatrix",
    "MigrateResult",
    "MissingFileError",
    "NotFoundError",
    "ParamInfo",
    "ParamSource",
    "ParamStatistics",
    "QuantizeResult",
    "QuantizedTensor",
    "RecoverResult",
    "Region",
    "RegionDiff",
    "ResolveResult",
    "RoundedNumbers",
    "Rounding",
    "SafetensorError",
    "SafetensorsFile",
    "SalvageResult",
    "SaveHandle",
    "SaveOptions",
    "SaveResult",
    "ShardedFile",
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
    "WrapResult",
    "WrapperFacts",
    "Writer",
    "__version__",
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
    "info",
    "merge",
    "migrate",
    "open",
    "quantize",
    "recover",
    "resolve",
    "safe_open",
    "salvage",
    "serialize",
    "serialize_file",
    "set_default_allocation_limit",
    "stream_params",
    "verify",
]

if not TYPE_CHECKING:  # else each name would be one that is there
    #: Operations on whole files, which few programs use: importing them takes longer than all else.
    _LATER = (
        "_convert", "_delta", "_diff", "_edit", "_info", "_param_source", "_quantize", "_repair", "_serialize",
        "_verify", "_wrap",
    )  # fmt: skip

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
