"""Checkpoints of neural networks: memory-mapped reading, crash-safe writing.

    import thalia_checkpoint as thalia

    with thalia.Writer("model.thalia") as writer:
        writer.add("encoder/weight", weight)

    with thalia.open("model.thalia") as file:
        weight = file["encoder"]["weight"].numpy()    # in the mapping: nothing is copied
        rows = file["encoder/weight"][3:7]            # only these are read

docs/python.md is the manual. numpy is all that is needed; `thalia_checkpoint.torch` needs torch.
"""

from __future__ import annotations

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
from ._core import __version__
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
from ._file import Connection, File, Region, SafetensorsFile, Tensors, open
from ._info import (
    ChecksumFacts,
    DeltaBase,
    DTypeTotal,
    Info,
    LossyFacts,
    WrapperFacts,
    info,
)
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
from ._safe_open import safe_open
from ._tensor import CooArrays, CsrArrays, Tensor
from ._verify import Finding, VerifyReport, verify
from ._wrap import WrapResult, compress, decompress
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

#: What code that was written for safetensors catches.
SafetensorError = ThaliaError

__all__ = [
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
    "Tensor",
    "TensorDiff",
    "TensorFacts",
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
    "diff",
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
    "verify",
]
