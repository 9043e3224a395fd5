"""What goes through the user's pager, on a terminal of ten lines.

pager_test.py THALIA MAKE_FILES
"""

import fcntl
import os
import pathlib
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

THALIA, MAKE_FILES = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])

try:
    for end in pty.openpty():
        os.close(end)
except OSError as error:
    print(f"skipped: no pseudo-terminal can be had here: {error}")
    sys.exit(77)

LONG = ["cat", "large.thalia", "matrix", "--all"]
# Takes what it is given into a file, and leaves with a status of its own.
KEEP = """#!/bin/sh
cat >"$0.new" && mv "$0.new" "$0.read"
exit 7
"""
# Hears of Ctrl-C, and stays until there is a file "go".
STAY = """#!/bin/sh
trap 'echo interrupted' INT
cat >/dev/null
touch "$0.ready"
while [ ! -e "$0.go" ]; do sleep 0.05; done
"""


def own_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Pager(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        subprocess.run([MAKE_FILES, folder.name], check=True)
        for name, text in ("keep", KEEP), ("other", KEEP), ("stay", STAY), ("less", KEEP):
            (cls.folder / name).write_text(text)
            (cls.folder / name).chmod(0o755)

    def start(self, words, variables, rows=10):
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
        known = {name: value for name, value in os.environ.items() if not name.endswith("PAGER")}
        path = f"{self.folder}{os.pathsep}{known['PATH']}"
        process = subprocess.Popen(
            [THALIA, *words], cwd=self.folder, stdin=terminal, stdout=terminal, stderr=terminal,
            env={**known, "TERM": "dumb", "PATH": path, **variables}, start_new_session=True,
            preexec_fn=own_terminal,
        )  # fmt: skip
        os.close(terminal)
        return process, controller

    def end(self, process, controller):
        """Status and all that the terminal shows."""
        shown = b""
        while True:
            try:
                piece = os.read(controller, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        os.close(controller)
        return process.wait(timeout=30), shown.decode().replace("\r\n", "\n")

    def on_terminal(self, *words, rows=10, **variables):
        return self.end(*self.start(words, variables, rows))

    def read(self, pager="keep"):
        """What the pager was given since the last call; None where it did not run."""
        path = self.folder / f"{pager}.read"
        if not path.exists():
            return None
        text = path.read_text()
        path.unlink()
        return text

    def piped(self, *words):
        return subprocess.run([THALIA, *words], cwd=self.folder, capture_output=True, text=True, check=False).stdout

    def test_long_output_goes_through_the_pager_and_the_status_stays(self):
        for words, status in (
            (LONG, 0),
            (["diff", "basic.thalia", "large.thalia", "--all"], 1),
            (["ls", "basic.thalia", "-r"], 0),
            (["info", "basic.thalia"], 0),
            (["stats", "basic.thalia"], 0),
            (["help"], 0),
            (["help", "ls"], 0),
            (["ls", "--help"], 0),
            (["help", "--json"], 0),
        ):
            found = self.on_terminal(*words, THALIA_PAGER="./keep")
            self.assertEqual(found, (status, ""), words)
            self.assertEqual(self.read(), self.piped(*words), words)

    def test_what_fits_does_not(self):
        for words in ["ls", "basic.thalia", "phase"], ["version"], ["log", "basic.thalia"]:
            status, shown = self.on_terminal(*words, THALIA_PAGER="./keep")
            self.assertEqual((status, shown), (0, self.piped(*words)), words)
            self.assertIsNone(self.read())
        tall = self.on_terminal("ls", "basic.thalia", "-r", rows=40, THALIA_PAGER="./keep")
        self.assertEqual(tall, (0, self.piped("ls", "basic.thalia", "-r")))
        # A line that wraps counts as several.
        self.on_terminal("ls", "basic.thalia", "-r", "--json", THALIA_PAGER="./keep")
        self.assertIsNotNone(self.read())
        self.on_terminal("verify", *["basic.thalia"] * 20, THALIA_PAGER="./keep")
        self.assertIsNone(self.read())

    def test_which_pager(self):
        expected = self.piped(*LONG)
        for variables, pager in (
            ({"THALIA_PAGER": "./keep", "PAGER": "./other"}, "keep"),
            ({"PAGER": "./other"}, "other"),
            ({"PAGER": "  ./other  -x --y=1 "}, "other"),
            ({"PAGER": "cat | ./other"}, "other"),
            ({}, "less"),
        ):
            self.assertEqual(self.on_terminal(*LONG, **variables), (0, ""), variables)
            self.assertEqual(self.read(pager), expected, variables)
        for variables in (
            {"THALIA_PAGER": "", "PAGER": "./keep"},
            {"PAGER": "cat"},
            {"PAGER": "no-such-pager -x"},
            {"PATH": "/nowhere"},
        ):
            self.assertEqual(self.on_terminal(*LONG, **variables), (0, expected), variables)
        for words in ["--no-pager", *LONG], [*LONG, "--no-pager"]:
            self.assertEqual(self.on_terminal(*words, THALIA_PAGER="./keep"), (0, expected))
        self.assertIsNone(self.read())

    def test_colours_stay(self):
        self.on_terminal("ls", "basic.thalia", "-r", THALIA_PAGER="./keep", TERM="xterm")
        self.assertTrue(self.read().startswith("\x1b[1mtensor"))

    def test_a_user_who_leaves_early_is_no_error(self):
        for words, status in (["help", "--json"], 0), (["diff", "basic.thalia", "large.thalia"], 1):
            self.assertEqual(self.on_terminal(*words, THALIA_PAGER="true"), (status, ""))

    def test_an_error_is_told_after_the_pager(self):
        status, shown = self.on_terminal("ls", "missing.thalia", THALIA_PAGER="./keep")
        self.assertEqual(status, 3)
        self.assertTrue(shown.startswith("thalia: missing.thalia: "), shown)
        self.assertIsNone(self.read())

    def test_an_interrupt_is_for_the_pager(self):
        process, controller = self.start(LONG, {"THALIA_PAGER": "./stay"})
        deadline = time.monotonic() + 30
        while not (self.folder / "stay.ready").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        for _ in range(2):
            os.write(controller, b"\x03")
            time.sleep(0.3)
        self.assertIsNone(process.poll())
        (self.folder / "stay.go").touch()
        status, shown = self.end(process, controller)
        self.assertEqual(status, 0)
        self.assertIn("interrupted", shown)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
