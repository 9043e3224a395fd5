"""What parameters are, below everything that has them."""

from __future__ import annotations

import os
from typing import Any, Literal, Protocol

Path = str | os.PathLike[str]
Access = Literal["mapped", "copied", "writable"]
Verification = Literal["on_first_touch", "at_open", "by_tensor", "off"]


class BinaryReader(Protocol):
    """A file object that is read: of open(), io.BytesIO, fsspec."""

    def read(self, size: int = ..., /) -> Any: ...


class BinaryWriter(Protocol):
    """A file object that is written to. It need not seek."""

    def write(self, data: bytes, /) -> Any: ...
