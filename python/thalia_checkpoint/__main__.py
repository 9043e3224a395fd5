"""python -m thalia_checkpoint ARGUMENT…: the program thalia, that of the wheel or else that of the path."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def main() -> None:
    """Becomes the program, with the arguments that were given; ends with status 127 where there is none."""
    own = Path(__file__).parent / "_program" / "thalia"
    program = os.fspath(own) if os.access(own, os.X_OK) else shutil.which("thalia")
    if program is None:
        print(
            "python -m thalia_checkpoint: the program thalia is not there. A wheel of thalia-checkpoint has it, "
            "and so has the Debian package thalia.",
            file=sys.stderr,
        )
        sys.exit(127)
    sys.stdout.flush()
    os.execv(program, ["thalia", *sys.argv[1:]])


if __name__ == "__main__":
    main()
