"""What the completions of bash, zsh and fish offer, and what the shells make of it.

    completion_test.py THALIA MAKE_FILES SOURCE_ROOT DOCUMENTS

A shell that is not installed is left out, with a line that says so.
"""

import json
import os
import pathlib
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

THALIA, MAKE_FILES, ROOT, DOCUMENTS = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
sys.path.insert(0, str(ROOT / "tools"))
import documents  # noqa: E402

TREE = documents.command_tree(THALIA)
HIPPOCAMPUS = ["hippocampus", *(f"hippocampus/{name}" for name in ("mask", "none", "w"))]
# What is typed of a name, in each shell, and the name as the program shows it.
ODD = [
    ("two", "two words"),
    ("two\\ w", "two words"),
    ("'two w", "two words"),
    ('"two w', "two words"),
    ("it", "it's"),
    ("say", 'say "so"'),
    ("colon", "colon:ed:name"),
    ("colon:e", "colon:ed:name"),
    ("equal=s", "equal=sign"),
    ("bracket", "bracket[0]"),
    ("glob", "glob*"),
    ("dollar", "dollar$HOME"),
    ("semi", "semi;colon"),
    ("arrow", "arrow->head"),
    ("back", "back\\\\slash"),
    ("lines", "lines\\nbroken"),
    ("caf", "caf\u00e9"),
    ("\\~t", "~tilde"),
]
NAMES = {"back\\\\slash": "back\\slash", "lines\\nbroken": "lines\nbroken"}
# bash: in a function, as the shell does when it is first needed. $2 is what readline would replace.
BASH = """
load() { . "$1"; }
load "$1"
COMP_LINE=$2 COMP_POINT=${#2}
_thalia thalia "$3" ''
[[ ${#COMPREPLY[@]} == 0 ]] || printf '%s\\n' "${COMPREPLY[@]}"
"""
# Commands with which a shell begins before a line is typed.
INTERACTIVE = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], ". {documents}/thalia"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "unsetopt prompt_sp; fpath=({folder}/functions $fpath); autoload -Uz compinit; compinit -u -D",
    ),
}
# Answers a completion, and otherwise tells what it was called with.
STAND_IN = """#!/bin/sh
[ "$1" = __complete ] && exec "{thalia}" "$@"
printf '%s\\n' "$@" >"{folder}/called.new"
mv "{folder}/called.new" "{folder}/called"
"""


def write_safetensors(path, names):
    header = {name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i, name in enumerate(names)}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(4 * len(names)))


def environment(folder=THALIA.parent, **more):
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8", "HOME": str(folder), **more}


def in_bash(line, folder):
    """What the function offers in the place of the last word of the line."""
    command = ["bash", "-c", BASH, "bash", DOCUMENTS / "thalia", line, line.rpartition(" ")[2]]
    result = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=environment())
    return result.stdout.split("\n")[:-1]


def in_fish(line, folder):
    script = "source $argv[1]; complete -C $argv[2]"
    command = ["fish", "--no-config", "-c", script, DOCUMENTS / "thalia.fish", line]
    result = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=environment())
    assert result.stderr == "", result.stderr
    return [found.partition("\t")[0] for found in result.stdout.split("\n")[:-1]]


def called(shell, line, folder):
    """Types the line, a tab and an end of line into the shell, and returns the words that thalia got."""
    words, setup = INTERACTIVE[shell]
    (folder / "called").unlink(missing_ok=True)
    controller, terminal = pty.openpty()
    more = {"PS1": "> ", "TERM": "vt100", "INPUTRC": "/dev/null", "HISTFILE": "/dev/null"}
    with subprocess.Popen(
        words, cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        env=environment(folder / "bin", **more),
    ) as process:  # fmt: skip
        os.close(terminal)
        os.set_blocking(controller, False)
        shown = b""
        typed = f"{setup.format(documents=DOCUMENTS, folder=folder)}\n{line}\t\n"
        os.write(controller, typed.encode())
        end = time.monotonic() + 30
        while not (folder / "called").exists() and time.monotonic() < end:
            try:
                shown += os.read(controller, 65536)
            except BlockingIOError:
                time.sleep(0.01)
        process.kill()
    os.close(controller)
    assert (folder / "called").exists(), shown.decode()
    return (folder / "called").read_text().split("\n")[:-1]


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        subprocess.run([MAKE_FILES, folder.name], check=True)
        for name in "models", "functions", "bin":
            (cls.folder / name).mkdir()
        command = [THALIA, "store", "init", "run", "--phases", "first,second"]
        subprocess.run(command, check=True, capture_output=True, cwd=cls.folder)
        shutil.copy(DOCUMENTS / "_thalia", cls.folder / "functions/_thalia")
        stand_in = cls.folder / "bin/thalia"
        stand_in.write_text(STAND_IN.format(thalia=THALIA, folder=cls.folder))
        stand_in.chmod(0o755)
        write_safetensors(cls.folder / "odd.safetensors", sorted({NAMES.get(name, name) for _, name in ODD}))
        shutil.copy(cls.folder / "odd.safetensors", cls.folder / "my odd (1).safetensors")
        cls.shells = {"bash": in_bash}
        if shutil.which("fish"):
            cls.shells["fish"] = in_fish

    def names(self, *words):
        result = subprocess.run(
            [THALIA, "__complete", *words], check=True, capture_output=True, text=True, cwd=self.folder
        )
        self.assertEqual(result.stderr, "")
        return result.stdout.split("\n")[:-1]

    def test_offers_no_name_that_is_taken_for_an_option(self):
        write_safetensors(self.folder / "dashes.safetensors", ["--output=.profile", "-o", "w-o", "w"])
        self.assertEqual(self.names("tensor", "dashes.safetensors", ""), ["w-o", "w"])
        for begun in ("-", "--", "--output"):
            self.assertEqual(self.names("tensor", "dashes.safetensors", begun), [])
        (self.folder / "dashes.safetensors").unlink()

    def test_offers_every_command_and_option(self):
        names = {command["name"] for command in TREE if " " not in command["name"]}
        words = {command["name"][6:] for command in TREE if command["name"].startswith("store ")}
        for shell, offered in self.shells.items():
            found = set(offered("thalia ", self.folder))
            self.assertEqual(found - {"--help", "--version"}, names, shell)
            self.assertEqual(set(offered("thalia help ", self.folder)), names, shell)
            self.assertEqual(set(offered("thalia store ", self.folder)), words, shell)
            self.assertEqual(set(offered("thalia help store ", self.folder)), words, shell)
            for command in TREE:
                known = {name for option in command["options"] for name in option["names"] if name[:2] == "--"}
                found = {word.rstrip("=") for word in offered(f"thalia {command['name']} x --", self.folder)}
                self.assertEqual(found, known, (shell, command["name"]))

    def test_offers_the_words_of_every_choice(self):
        for shell, offered in self.shells.items():
            for command in TREE:
                for option in command["options"]:
                    words = option["offers"]
                    if not option["takes_value"] or not words or any(word[0] == "@" for word in words):
                        continue
                    for name in option["names"]:
                        found = offered(f"thalia {command['name']} {name} ", self.folder)
                        self.assertEqual(sorted(found), sorted(words), (shell, command["name"], name))
        self.assertEqual(in_bash("thalia ls --max-memory ", self.folder), [])

    def test_offers_regions_tensors_and_files_of_a_folder(self):
        for line, expected in (
            ("info bas", ["basic.thalia"]),
            ("verify basic.thalia --threads 2 large.t", ["large.thalia"]),
            ("bench --dir mod", ["models"]),
            ("ls basic.thalia hippocampus", HIPPOCAMPUS),
            ("ls --max-memory 1GiB basic.thalia x hippo", HIPPOCAMPUS),
            ("ls model.safetensors ste", ["steps"]),
            ("cat --format npy basic.thalia cortex/w_r", ["cortex/w_rec"]),
            ("cat --dense model.safetensors ste", ["steps"]),
            ("extract basic.thalia --regions cor", ["cortex"]),
            ("append other.thalia basic.thalia --regions cor", ["cortex"]),
            ("diff basic.thalia basic.thalia cortex/w_r", ["cortex/w_rec"]),
            ("ls 'basic.thalia' cortex/w_r", ["cortex/w_rec"]),
            ("ls basic.thalia x y cortex/w_r", ["cortex/w_rec"]),
            ("ls not\\ there z", []),
            ("store save mod", ["models"]),
            ("store save run --step 7 bas", ["basic.thalia"]),
            ("store list run --phase ", ["first", "second"]),
            ("store promote run --phase=se", ["--phase=second"]),
            ("store pool run d", ["draw"]),
        ):
            for shell, offered in self.shells.items():
                found = {word.rstrip("/") for word in offered("thalia " + line, self.folder)}
                self.assertEqual(sorted(found), expected, (shell, line))

    def test_shells_type_a_name_as_it_is(self):
        for shell in "bash", "zsh":
            if not shutil.which(shell):
                print(f"left out: {shell} is not installed")
                continue
            for typed, name in ODD:
                words = called(shell, f"thalia cat odd.safetensors {typed}", self.folder)
                self.assertEqual(words, ["cat", "odd.safetensors", name], (shell, typed))
            for line, words in (
                ("cat my\\ odd\\ \\(1\\).safetensors two", ["cat", "my odd (1).safetensors", "two words"]),
                ("cat 'my odd (1).safetensors' two", ["cat", "my odd (1).safetensors", "two words"]),
                ("cat my", ["cat", "my odd (1).safetensors"]),
                ("extract basic.thalia --regions x,hip", ["extract", "basic.thalia", "--regions", "x,hippocampus"]),
                ("extract basic.thalia --regions=cor", ["extract", "basic.thalia", "--regions=cortex"]),
                ("convert a b --codec=zs", ["convert", "a", "b", "--codec=zstd"]),
                ("vers", ["version"]),
                ("ls --rec", ["ls", "--recursive"]),
                ("store prom", ["store", "promote"]),
                ("store promote run --phase sec", ["store", "promote", "run", "--phase", "second"]),
                ("store latest run --be", ["store", "latest", "run", "--best"]),
                ("append basic.thalia basic.thalia --regions hip",
                 "append basic.thalia basic.thalia --regions hippocampus".split()),
            ):  # fmt: skip
                self.assertEqual(called(shell, "thalia " + line, self.folder), words, (shell, line))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_knows_odd_names(self):
        found = in_fish("thalia cat odd.safetensors ", self.folder)
        self.assertEqual(set(found), {name for _, name in ODD})
        found = in_fish("thalia cat my\\ odd\\ \\(1\\).safetensors two", self.folder)
        self.assertEqual(found, ["two words"])

    def test_program_filters_names(self):
        self.assertEqual(self.names("region", "basic.thalia", "hip"), ["hippocampus"])
        self.assertEqual(self.names("regions", "basic.thalia", "cortex,"), ["cortex,hippocampus"])
        self.assertEqual(self.names("regions", "names.thalia", "a"), ["a\\x2cb"])
        self.assertEqual(self.names("region", "model.safetensors", ""), [])
        self.assertEqual(self.names("tensor", "missing.thalia", ""), [])
        for name in self.names("tensor", "odd.safetensors", ""):
            subprocess.run([THALIA, "cat", "odd.safetensors", name], check=True, capture_output=True, cwd=self.folder)

    def test_names_of_large_files_come_at_once(self):
        many = self.folder / "many.safetensors"
        write_safetensors(many, [f"model.layers.{i // 10}.block.{i % 10}.weight" for i in range(10_000)])
        subprocess.run([THALIA, "convert", many, self.folder / "many.thalia"], check=True, capture_output=True)
        for file in "many.safetensors", "many.thalia":
            took = []
            for _ in range(5):
                begin = time.monotonic()
                names = self.names("tensor", file, "")
                took.append(time.monotonic() - begin)
            self.assertEqual(len(names), 10_000)
            print(f"{file}: {1000 * min(took):.0f} ms")
            self.assertLess(min(took), 1)  # far above what it takes, for loaded machines and sanitizers


if __name__ == "__main__":
    if not shutil.which("fish"):
        print("left out: fish is not installed")
    unittest.main(argv=sys.argv[:1])
