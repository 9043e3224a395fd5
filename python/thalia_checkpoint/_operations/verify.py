"""Whether a file is what was written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .. import _core
from .._core import Finding, VerifyReport
from .._keywords import suggests
from .._progress import callback
from .._support import paths

if TYPE_CHECKING:
    from .._progress import Progress
    from .._types import Access, Path

__all__ = ["Finding", "VerifyReport", "verify"]


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
    shown = callback(progress, f"verifying {os.fspath(path)}")
    return _core.verify(path, quick, access, threads, max_findings, paths(search), legacy, shown)
