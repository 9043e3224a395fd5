"""meson-python, whose wheels get the shared libraries that the module needs: so they run on machines
that have none of them. auditwheel copies them in, beside the package, under names of their own.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import mesonpy
from build_progress import told
from mesonpy import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)


def in_folder(config_settings, folder):
    """The settings, and the build folder they name: the one given if they name none."""
    settings = dict(config_settings or {})
    build = settings.setdefault("build-dir", settings.pop("builddir", os.fspath(folder)))
    return settings, Path(build)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    build = (config_settings or {}).get("build-dir", f"build/cp{sys.version_info.major}{sys.version_info.minor}")
    with told("thalia-checkpoint", Path(build)):
        return mesonpy.build_editable(wheel_directory, config_settings, metadata_directory)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        settings, build = in_folder(config_settings, folder / "build")
        with told("thalia-checkpoint", build):
            name = mesonpy.build_wheel(scratch, settings, metadata_directory)
        repaired = folder / "repaired"
        command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", repaired]
        subprocess.run([*command, folder / name], check=True)
        (wheel,) = repaired.iterdir()
        shutil.copy(wheel, wheel_directory)
        return wheel.name
