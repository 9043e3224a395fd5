"""The packages of a build are the same in meson.build, which says what is missing, in tools/lib.sh, which installs
them, and on the page for users.

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


class Packages(unittest.TestCase):
    def test_meson_has_libraries(self):
        self.assertGreater(len(in_meson()), 12)

    def test_what_meson_names_is_installed(self):
        wanted = {package for name, package in in_meson().items() if name != "benchmark"}
        self.assertEqual(wanted, {name for name in in_shell("build_packages") if name.startswith(("lib", "zlib"))})
        self.assertIn(in_meson()["benchmark"], in_shell("test_packages"))

    def test_the_page_lists_them(self):
        text = (SOURCE / "docs/use/quick-start.md").read_text(encoding="utf-8")
        (command,) = re.findall(r"^apt-get install ((?:.*\\\n)*.*)$", text, re.MULTILINE)
        listed = set(command.replace("\\\n", " ").split())
        self.assertLessEqual(in_shell("build_packages"), listed)
        self.assertLessEqual(listed - in_shell("build_packages"), {"python3-dev", "python3-venv"})


if __name__ == "__main__":
    unittest.main()
