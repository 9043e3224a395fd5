"""What differs on a terminal.

    terminal_test.py THALIA MAKE_FILES
"""

import os
import pathlib
import pty
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


def on_terminal(*arguments, cwd):
    """Status and everything that a terminal shows."""
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        [THALIA, *arguments], cwd=cwd, stdin=terminal, stdout=terminal, stderr=terminal
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
            status, shown = on_terminal(
                "cat", "basic.thalia", "w_in", "--format", binary, cwd=self.folder.name
            )
            self.assertEqual(status, 2)
            self.assertEqual(
                shown.strip(),
                f"thalia: --format: {binary} is binary and would upset the terminal, "
                "name a file with -o",
            )

    def test_binary_into_a_file_is_fine(self):
        status, shown = on_terminal(
            "cat", "basic.thalia", "w_in", "--format", "npy", "-o", "w.npy", cwd=self.folder.name
        )
        self.assertEqual((status, shown), (0, ""))
        self.assertEqual(os.path.getsize(f"{self.folder.name}/w.npy"), 128 + 48)

    def test_short_work_shows_no_bar(self):
        status, shown = on_terminal("verify", "basic.thalia", cwd=self.folder.name)
        self.assertEqual(status, 0)
        self.assertNotIn("\x1b", shown)
        self.assertEqual(shown.count("\n"), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
