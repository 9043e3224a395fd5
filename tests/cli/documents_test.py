"""Whether the manual page and the completion know the options that the program's help shows.

    documents_test.py THALIA SOURCE_ROOT
"""

import pathlib
import re
import subprocess
import sys
import unittest

THALIA, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
COMPLETE = """
. "$1"
COMP_WORDS=(thalia "$2" x -) COMP_CWORD=3
_thalia
printf '%s\\n' "${COMPREPLY[@]}"
"""


def output_of(*words):
    return subprocess.run(words, capture_output=True, check=True, text=True).stdout


def commands():
    return re.findall(r"^  (\w+) ", output_of(THALIA, "help"), re.MULTILINE)


def options(command):
    """As the help lists them: a line that begins with one, its name in each form."""
    shown = re.findall(r"^  (-\S.*)$", output_of(THALIA, "help", command), re.MULTILINE)
    return {name for line in shown for name in re.findall(r"--[a-z0-9-]+", line.split("  ")[0])}


class Documents(unittest.TestCase):
    def test_manual_page_has_every_option(self):
        page = (ROOT / "docs/thalia.1").read_text(encoding="utf-8").replace("\\-", "-")
        for command in commands():
            self.assertRegex(page, rf"(?m)^\.BI {command} ", command)
            for option in options(command):
                self.assertIn(option, page, command)

    def test_manual_page_has_no_other_option(self):
        page = (ROOT / "docs/thalia.1").read_text(encoding="utf-8").replace("\\-", "-")
        known = {option for command in commands() for option in options(command)} | {"--version"}
        self.assertEqual(set(re.findall(r"--[a-z0-9-]+", page)) - known, set())

    def test_completion_offers_every_option(self):
        for command in commands():
            offered = output_of(
                "bash", "-c", COMPLETE, "bash", ROOT / "src/cli/thalia.bash", command
            )
            self.assertEqual(set(offered.split()), options(command), command)

    def test_completion_and_readme_know_every_command(self):
        completion = (ROOT / "src/cli/thalia.bash").read_text(encoding="utf-8")
        listed = re.search(r"commands='([^']*)'", completion)[1].split()
        self.assertEqual(sorted(listed), sorted(commands()))
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        for command in commands():
            self.assertIn(f"`thalia {command}", readme)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
