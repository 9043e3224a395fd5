"""Whether a file is what was written."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import _core
from .._keywords import suggests
from .._progress import callback
from .._support import paths

if TYPE_CHECKING:
    from .._progress import Progress
    from .._types import Access, Path

__all__ = ["Finding", "VerifyReport", "verify"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or odd. Texts are empty, and length is 0, if they do not apply."""

    severity: str
    """"error": the file breaks its format, or bytes are not those that were written; "warning"."""
    code: str
    """As `code` of the exception that a reader would raise."""
    section: str
    """"header", "directory", "payload", …"""
    field: str
    region: str
    tensor: str
    offset: int
    """In bytes from the start of the file."""
    length: int
    """Bytes concerned."""
    message: str


@dataclass(frozen=True)
class VerifyReport:
    """What verify() found."""

    ok: bool
    """No finding is an error."""
    findings: tuple[Finding, ...]
    suppressed: int
    """Findings beyond max_findings."""
    suppressed_errors: int
    """Of these, errors."""
    bytes_checked: int
    """Of what a checksum was compared with."""
    regions: int
    tensors: int
    tensors_compared: int
    """Tensors whose bytes were compared with a checksum. The others may have changed unnoticed."""
    structure_only: bool
    """Names, tables and bounds were checked, and no element: the file has no checksums, or quick=True."""
    seconds: float


@suggests
def verify(
    path: Path,
    quick: bool = False,
    access: Access = "mapped",
    threads: int = 0,
    max_findings: int = 1000,
    search: Iterable[Path] = (),
    legacy: bool = False,
    progress: Progress | None = None,
) -> VerifyReport:
    """Everything that is wrong with a file of any format, as `thalia verify --resolve` tells it.

    Damage is reported and never raised. With a delta, everything it is based on is verified too, and
    whether each of its tensors is restored as it was saved. Most formats of others have no checksums: their
    structure is all that can be checked, and the report says structure_only.

    quick: structure alone, no payload is read.
    access: "copied" to read in parts, so that what the disk cannot give is a finding.
    threads: 0 for one a core.
    search: folders in which bases are looked for that are not where their delta says.
    legacy: take files that the programs of their formats no longer do.
    progress: called with bytes checked and in all, from a thread of the work; what it raises ends
        that.
    Raises IoError where the file cannot be opened; FormatError with the code "limit_exceeded".
    """
    begin = time.perf_counter()
    shown = callback(progress, f"verifying {os.fspath(path)}")
    report = _core.verify(path, quick, access, threads, max_findings, paths(search), legacy, shown)
    report["seconds"] = time.perf_counter() - begin
    report["findings"] = tuple(Finding(**finding) for finding in report["findings"])
    return VerifyReport(**report)
