"""Whether the manual pages and the completions are what the program's commands are.

documents_test.py THALIA MAKE_FILES SOURCE_ROOT DOCUMENTS
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

THALIA, MAKE_FILES, ROOT, DOCUMENTS = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
MANUAL = DOCUMENTS / "thalia.1"
sys.path.insert(0, str(ROOT / "tools"))
import documents  # noqa: E402

TREE = documents.command_tree(THALIA)


class Documents(unittest.TestCase):
    def test_build_makes_a_page_of_every_template(self):
        templates = [*(ROOT / "src/cli/documents").glob("*.in"), *(ROOT / "docs").glob("*.in")]
        self.assertEqual({template.name for template in templates}, set(documents.PAGES))
        for template in templates:
            name, text = documents.page(template, TREE)
            self.assertEqual((DOCUMENTS / name).read_text(encoding="utf-8"), text, name)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_manual_page_renders_without_warnings(self):
        groff = ["groff", "-man", "-ww", "-Tutf8", "-rLL=100n", "-P-c", MANUAL]
        rendered = subprocess.run(groff, check=True, capture_output=True, text=True)
        self.assertEqual(rendered.stderr, "")
        page = re.sub(".\b", "", rendered.stdout)
        for command in TREE:
            self.assertIn(f"thalia {command['name']} {command['usage']}".rstrip(), page)
            for option in command["options"]:
                if option["names"] != ["-h", "--help"]:
                    shown = re.search(rf"(?m)^ +{', '.join(option['names'])}\b", page)
                    self.assertTrue(shown, option["names"])

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_manual_page_fits_into_80_columns(self):
        groff = ["groff", "-man", "-Tutf8", "-rLL=80n", "-P-c", MANUAL]
        rendered = subprocess.run(groff, check=True, capture_output=True, text=True).stdout
        lines = re.sub(".\b", "", rendered).split("\n")
        self.assertEqual([line for line in lines if len(line) > 80], [])

    def test_help_of_every_command_fits_into_80_columns(self):
        for words in ["help"], *(["help", command["name"]] for command in TREE):
            printed = subprocess.run([THALIA, *words], check=True, capture_output=True, text=True).stdout
            self.assertEqual([line for line in printed.split("\n") if len(line) > 80], [], words)

    def test_manual_page_speaks_of_no_other_option(self):
        page = MANUAL.read_text(encoding="utf-8").replace("\\-", "-")
        known = {name for command in TREE for option in command["options"] for name in option["names"]}
        self.assertEqual(set(re.findall(r"--[a-z0-9-]+", page)) - known, set())

    def test_the_manual_for_users_knows_every_command(self):
        manual = (ROOT / "docs/use/program.md").read_text(encoding="utf-8")
        for command in TREE:
            self.assertIn(f"`thalia {command['name']}", manual)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
