"""What parameters are, below everything that has them."""

from __future__ import annotations

import os
from typing import Literal

Path = str | os.PathLike[str]
Access = Literal["mapped", "copied", "writable"]
Verification = Literal["on_first_touch", "at_open", "by_tensor", "off"]
