"""Whether the manual page, the completion and the README are what the program's commands are.

    documents_test.py THALIA MAKE_FILES SOURCE_ROOT
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

THALIA, MAKE_FILES, ROOT = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
sys.path.insert(0, str(ROOT / "tools"))
import documents  # noqa: E402

TREE = documents.command_tree(THALIA)
HIPPOCAMPUS = ["hippocampus", *(f"hippocampus/{name}" for name in ("mask", "none", "w"))]
# Loaded in a function, as the shell does when it is first needed.
COMPLETE = """
load() { . "$1"; }
load "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_thalia
[[ ${#COMPREPLY[@]} == 0 ]] || printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(*words, folder=None):
    """What the completion offers in the place of the last word."""
    path = f"{THALIA.parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", ROOT / "src/cli/thalia.bash", "thalia", *words],
        check=True, capture_output=True, text=True, cwd=folder, env={**os.environ, "PATH": path},
    )  # fmt: skip
    return result.stdout.split("\n")[:-1]


class Documents(unittest.TestCase):
    def test_they_are_made_of_the_tree_of_commands(self):
        for path in documents.PAGES:
            self.assertEqual(
                (ROOT / path).read_text(encoding="utf-8"),
                documents.renewed(path, TREE),
                "run tools/documents.py build/src/cli/thalia",
            )

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_manual_page_renders_without_warnings(self):
        groff = ["groff", "-man", "-ww", "-Tutf8", "-rLL=100n", "-P-c", ROOT / "docs/thalia.1"]
        rendered = subprocess.run(groff, check=True, capture_output=True, text=True)
        self.assertEqual(rendered.stderr, "")
        page = re.sub(".\b", "", rendered.stdout)
        for command in TREE:
            self.assertIn(f"thalia {command['name']} {command['usage']}".rstrip(), page)
            for option in command["options"]:
                if option["names"] != ["-h", "--help"]:
                    shown = re.search(rf"(?m)^ +{', '.join(option['names'])}\b", page)
                    self.assertTrue(shown, option["names"])

    def test_manual_page_speaks_of_no_other_option(self):
        page = (ROOT / "docs/thalia.1").read_text(encoding="utf-8").replace("\\-", "-")
        known = {name for command in TREE for option in command["options"] for name in option["names"]}
        self.assertEqual(set(re.findall(r"--[a-z0-9-]+", page)) - known, set())

    def test_readme_knows_every_command(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        for command in TREE:
            self.assertIn(f"`thalia {command['name']}", readme)


class Completion(unittest.TestCase):
    def test_offers_every_command_and_option(self):
        names = {command["name"] for command in TREE}
        self.assertEqual(set(offered("")), names | {"--help", "--version"})
        self.assertEqual(set(offered("help", "")), names)
        for command in TREE:
            known = {name for option in command["options"] for name in option["names"]}
            options = {name for name in known if name.startswith("--")}
            self.assertEqual(set(offered(command["name"], "x", "-")), options, command["name"])

    def test_offers_the_words_of_every_choice(self):
        for command in TREE:
            for option in command["options"]:
                if option["takes_value"] and not any(word[0] == "@" for word in option["offers"]):
                    for name in option["names"]:
                        found = offered(command["name"], name, "")
                        self.assertEqual(found, option["offers"], (command["name"], name))

    def test_offers_regions_tensors_and_files_of_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([MAKE_FILES, folder], check=True)
            (pathlib.Path(folder) / "models").mkdir()
            for words, expected in (
                (("info", "bas"), ["basic.thalia"]),
                (("verify", "basic.thalia", "--threads", "2", "large.t"), ["large.thalia"]),
                (("convert", "basic.thalia", "--codec", "zstd", "mod"), ["model.safetensors", "models"]),
                (("bench", "--dir", "mod"), ["models"]),
                (("ls", "basic.thalia", "hippocampus"), HIPPOCAMPUS),
                (("ls", "--max-memory", "1GiB", "basic.thalia", "x", "hippo"), HIPPOCAMPUS),
                (("ls", "model.safetensors", "ste"), ["steps"]),
                (("cat", "--format", "npy", "basic.thalia", "cortex/w_r"), ["cortex/w_rec"]),
                (("cat", "--dense", "model.safetensors", "ste"), ["steps"]),
                (("extract", "basic.thalia", "--regions", "cor"), ["cortex"]),
                (("append", "other.thalia", "basic.thalia", "--regions", "cor"), ["cortex"]),
                (("ls", "not there", ""), []),
            ):
                self.assertEqual(sorted(offered(*words, folder=folder)), expected, words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
