"""The packages of a build are the same in meson.build, which says what is missing, in tools/lib.sh, which installs
them, in tools/debian/control, and on the page for users.

usage: packages_test.py SOURCE
"""

import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1))


def in_meson():
    text = (SOURCE / "meson.build").read_text(encoding="utf-8")
    tables = re.findall(r"libraries \+?= \{(.*?)\n?\s*\}\n", text, re.DOTALL)
    rows = [row for table in tables for row in re.findall(r"'([\w+-]+)': \['>=[\d.]+', '([\w+.-]+)'\]", table)]
    return dict(rows)


def in_shell(name):
    text = (SOURCE / "tools/lib.sh").read_text(encoding="utf-8")
    (body,) = re.findall(rf"^{name}=\((.*?)\)$", text, re.DOTALL | re.MULTILINE)
    return {word.strip("'").partition("=")[0] for word in body.split()}


def in_control():
    """The build dependencies: those of every build, and those of its tests."""
    text = (SOURCE / "tools/debian/control").read_text(encoding="utf-8")
    (body,) = re.findall(r"^Build-Depends:\n((?: .*\n)*)", text, re.MULTILINE)
    lines = body.splitlines()
    names = [
        {line.split()[0].strip(",").partition(":")[0] for line in lines if ("!nocheck" in line) == t}
        for t in (False, True)
    ]
    return names[0], names[1]


class Packages(unittest.TestCase):
    def test_meson_has_libraries(self):
        self.assertGreater(len(in_meson()), 12)

    def test_what_meson_names_is_installed(self):
        wanted = {package for name, package in in_meson().items() if name != "benchmark"}
        self.assertEqual(wanted, {name for name in in_shell("build_packages") if name.startswith(("lib", "zlib"))})
        self.assertIn(in_meson()["benchmark"], in_shell("test_packages"))

    def test_debian_packages_are_built_with_the_same(self):
        build, check = in_control()
        # Every system that builds packages has a compiler, and Meson brings ninja.
        self.assertLessEqual(in_shell("build_packages") - {"g++", "ninja-build"}, build)
        # Benchmarks are none of their tests, and wheels take the place of a virtual environment.
        self.assertEqual(
            in_shell("test_packages") - {"libbenchmark-dev", "python3", "python3-dev", "python3-venv"}, check
        )

    def test_the_page_lists_them(self):
        text = (SOURCE / "docs/use/quick-start.md").read_text(encoding="utf-8")
        (command,) = re.findall(r"^apt-get install ((?:.*\\\n)*.*)$", text, re.MULTILINE)
        listed = set(command.replace("\\\n", " ").split())
        self.assertLessEqual(in_shell("build_packages"), listed)
        self.assertLessEqual(listed - in_shell("build_packages"), {"python3-dev", "python3-venv"})


if __name__ == "__main__":
    unittest.main()
