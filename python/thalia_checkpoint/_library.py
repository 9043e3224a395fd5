"""What is said where a shared library that the compiled module needs is not there."""

from __future__ import annotations

import re

#: Packages of Debian whose names do not follow from the library's.
_PACKAGES = {"libz.so.1": "zlib1g", "libcrypto.so.3": "libssl3"}


def missing_library(error: ImportError) -> ImportError:
    """The error with the Debian package of the library; the same where something else is wrong."""
    found = re.match(r"((lib[\w+-]+)\.so\.(\d+)): cannot open shared object file", str(error))
    if not found:
        return error
    library, name, version = found.groups()
    package = _PACKAGES.get(library, f"{name}-{version}" if name[-1].isdigit() else f"{name}{version}")
    text = (
        f'{library} is missing, which thalia_checkpoint needs: please run "apt-get install {package}" (name of Debian)'
    )
    return ImportError(text, name=error.name, path=error.path)
