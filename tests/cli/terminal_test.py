"""What differs on a terminal.

terminal_test.py THALIA MAKE_FILES
"""

import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import unittest

THALIA, MAKE_FILES = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])

try:
    for end in pty.openpty():
        os.close(end)
except OSError as error:
    print(f"skipped: no pseudo-terminal can be had here: {error}")
    sys.exit(77)


def on_terminal(*arguments, cwd, outputs=("stdout", "stderr"), **variables):
    """Status and everything that a terminal of one kind or another shows."""
    controller, terminal = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("TERM", "NO_COLOR")}
    streams = {name: terminal if name in outputs else subprocess.DEVNULL for name in ("stdout", "stderr")}
    with subprocess.Popen(
        [THALIA, *arguments], cwd=cwd, stdin=terminal, env={**environment, **variables}, **streams
    ) as process:
        os.close(terminal)
        shown = b""
        while True:
            try:
                piece = os.read(controller, 65536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not piece:
                break
            shown += piece
    os.close(controller)
    return process.returncode, shown.decode()


class Terminal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([MAKE_FILES, cls.folder.name], check=True)

    def test_binary_is_refused(self):
        for binary in "npy", "raw":
            status, shown = on_terminal("cat", "basic.thalia", "w_in", "--format", binary, cwd=self.folder.name)
            self.assertEqual(status, 2)
            self.assertEqual(
                shown.strip(),
                f"thalia: --format: {binary} is binary and would upset the terminal, name a file with -o",
            )

    def test_binary_into_a_file_is_fine(self):
        status, shown = on_terminal(
            "cat", "basic.thalia", "w_in", "--format", "npy", "-o", "w.npy", cwd=self.folder.name
        )
        self.assertEqual((status, shown), (0, ""))
        self.assertEqual(os.path.getsize(f"{self.folder.name}/w.npy"), 128 + 48)

    def test_colours_only_where_the_terminal_has_them(self):
        diff = ("diff", "basic.thalia", "large.thalia")
        for variables, colored in (
            ({"TERM": "xterm"}, True),
            ({"TERM": "xterm", "NO_COLOR": ""}, True),
            ({"TERM": "xterm", "NO_COLOR": "1"}, False),
            ({"TERM": "dumb"}, False),
            ({"TERM": ""}, False),
            ({}, False),
        ):
            status, shown = on_terminal(*diff, cwd=self.folder.name, **variables)
            self.assertEqual(status, 1)
            self.assertEqual("  \x1b[32m+ r\x1b[0m  4 tensors" in shown, colored, variables)
            self.assertEqual("\x1b[31m- cortex\x1b[0m  " in shown, colored, variables)
            self.assertEqual("\x1b" in shown, colored, variables)
        _, shown = on_terminal("ls", "basic.thalia", cwd=self.folder.name, TERM="xterm")
        self.assertTrue(shown.startswith("\x1b[1mregion       tensors"), shown)
        _, shown = on_terminal("help", "ls", cwd=self.folder.name, TERM="xterm")
        self.assertIn("\x1b[1mArguments:\x1b[0m\r\n", shown)

    def test_colours_as_asked_for(self):
        for words in ["--color", "never", "ls", "basic.thalia"], ["ls", "basic.thalia", "--color=never"]:
            status, shown = on_terminal(*words, cwd=self.folder.name, TERM="xterm")
            self.assertEqual((status, "\x1b" in shown), (0, False), words)
        for words in ["--color=always", "ls", "basic.thalia"], ["ls", "basic.thalia", "--color", "always"]:
            piped = subprocess.run(
                [THALIA, *words], cwd=self.folder.name, capture_output=True, check=True, env={"NO_COLOR": "1"}
            )
            self.assertTrue(piped.stdout.startswith(b"\x1b[1mregion"), words)
        for words in ["ls", "basic.thalia", "--json"], ["cat", "basic.thalia", "w_in"]:
            status, shown = on_terminal(*words, "--color", "always", cwd=self.folder.name, TERM="xterm")
            self.assertEqual((status, "\x1b" in shown), (0, False), words)
        status, shown = on_terminal("ls", "x", "--color", "red", cwd=self.folder.name)
        self.assertEqual(status, 2)
        self.assertIn("--color: got 'red', expected auto, always, never", shown)

    def test_errors_have_the_colour_of_standard_error(self):
        words = ("info", "missing.thalia")
        for outputs in ["stderr"], ["stderr", "stdout"]:
            status, shown = on_terminal(*words, cwd=self.folder.name, outputs=outputs, TERM="xterm")
            self.assertEqual(status, 3)
            self.assertTrue(shown.startswith("\x1b[31mthalia:\x1b[0m missing.thalia: open failed"), shown)
        _, shown = on_terminal(*words, cwd=self.folder.name, TERM="xterm", NO_COLOR="1")
        self.assertTrue(shown.startswith("thalia: missing.thalia: open failed"), shown)
        _, shown = on_terminal(*words, "--json", cwd=self.folder.name, TERM="xterm")
        self.assertNotIn("\x1b", shown)
        piped = subprocess.run([THALIA, *words], cwd=self.folder.name, capture_output=True, check=False)
        self.assertNotIn(b"\x1b", piped.stderr)

    def test_nothing_of_a_file_reaches_the_terminal_raw(self):
        """Whichever command shows names and metadata: all that is sent is text, and colours of the program's own."""
        odd = "a\x1b[31m\nb\r\x07\x9b\u202e"
        header = {"__metadata__": {odd: odd}, odd: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
        text = json.dumps(header).encode()
        folder = pathlib.Path(self.folder.name)
        (folder / "odd.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
        convert = [THALIA, "convert", "odd.safetensors", "odd.thalia"]
        subprocess.run(convert, cwd=folder, capture_output=True, check=True)
        laid_out = (folder / "none.thalia").read_bytes()
        self.assertEqual(laid_out.count(b'{"description": "'), 1)
        (folder / "odd_space.thalia").write_bytes(laid_out.replace(b'{"description": "', b'{"description":\r"'))
        _, shown = on_terminal("info", "odd_space.thalia", "--json", cwd=folder)
        self.assertIn('{"description": "', shown)
        piece = re.compile(r"\x1b\[(?:0|1|31|32|33)m|\r\n|[^\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\ufeff]")
        for file in "names.thalia", "odd.safetensors", "odd.thalia", "odd_space.thalia":
            for words in (
                ["info", file], ["info", file, "--metadata"], ["info", file, "--json"], ["ls", file],
                ["ls", file, "-r"],
                ["ls", file, "-r", "--json"], ["stats", file], ["stats", file, "--json"], ["verify", file],
                ["diff", "basic.thalia", file, "--all"], ["diff", file, "basic.thalia", "--json"], ["cat", file, "*"],
                ["cat", file, "*" + odd + "*"], ["log", file], ["ls", file, odd], ["info", odd],
                ["ls", file, "--" + odd],
                ["__complete", "tensor", file, ""], ["set", file, odd + "=1"], ["rm", file, odd], [odd],
                ["rename", file, "twice", odd], ["extract", file, "--regions", odd, odd + ".thalia"],
            ):  # fmt: skip
                _, shown = on_terminal(*words, cwd=folder, TERM="xterm")
                self.assertEqual(piece.sub("", shown), "", (words, shown))

    def test_short_work_shows_no_bar(self):
        status, shown = on_terminal("verify", "basic.thalia", cwd=self.folder.name)
        self.assertEqual(status, 0)
        self.assertNotIn("\x1b", shown)
        self.assertEqual(shown.count("\n"), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
