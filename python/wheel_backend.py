"""meson-python, whose wheels get the shared libraries that the module needs: so they run on machines
that have none of them. auditwheel copies them in, beside the package, under names of their own.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mesonpy import (  # noqa: F401
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)
from mesonpy import build_wheel as _build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        name = _build_wheel(folder, config_settings, metadata_directory)
        repaired = Path(folder) / "repaired"
        command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", repaired]
        subprocess.run([*command, Path(folder) / name], check=True)
        (wheel,) = repaired.iterdir()
        shutil.copy(wheel, wheel_directory)
        return wheel.name
