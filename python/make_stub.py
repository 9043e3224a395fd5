"""Writes the stub of the compiled module: make_stub.py FOLDER OUTPUT, with the module in FOLDER.

nanobind tells all that is in it. What is added here holds for any version of Python and of nanobind.
"""

import re
import sys
import tempfile
from pathlib import Path

from nanobind import stubgen

# Members that type checkers need no stub for, or know better; and the buffer protocol, of which
# Python tells nothing before 3.12.
PATTERNS = r"""
_core\.__prefix__:
    __version__: str

__match_args__$:

__(getstate|setstate)__$:

\.__buffer__$:

_core\.(Payload|OwnedBytes)\.__prefix__:
    def __buffer__(self, flags: int, /) -> memoryview: ...
"""


def main(folder: str, output: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        patterns = Path(scratch) / "patterns"
        patterns.write_text(PATTERNS, encoding="utf-8")
        made = Path(scratch) / "stub.pyi"
        stubgen.main(["-q", "-i", folder, "-m", "_core", "-p", str(patterns), "-o", str(made)])
        text = made.read_text(encoding="utf-8")
    # A path may be bytes too; the library takes none.
    text = re.sub(r"\bos\.PathLike\b(?!\[)", "os.PathLike[str]", text)
    Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
