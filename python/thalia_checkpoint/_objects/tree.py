"""The tree of a file, and the members of its metadata that are the caller's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._files.any_file import AnyFile
from .._files.file import File
from .._leaves import MEMBER
from ..errors import UsageError, make_error

#: The member of a file's metadata beside MEMBER: what PyTorch knows besides.
BESIDE = "pt"


def tree_of(file: File | AnyFile) -> tuple[Any, Any]:
    """What its metadata has under MEMBER, and the attributes next to it; None if there are none. A tree is of
    one file: none is looked for in a model in several."""
    if isinstance(file, AnyFile) and file.format in ("safetensors", "thalia-shards"):
        return None, None
    metadata = file.metadata
    beside = metadata.get(BESIDE)
    return metadata.get(MEMBER), beside.get("attributes") if isinstance(beside, dict) else None


def check_metadata(metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The caller's members of a file's metadata. Raises UsageError for those that are not his."""
    for name in (MEMBER, BESIDE):
        if metadata is not None and name in metadata:
            raise make_error(
                UsageError,
                f"metadata: got a member {name!r}, expected others: it has what save() writes",
                "bad_argument",
                field="metadata",
                value=name,
            )
    return metadata or {}
