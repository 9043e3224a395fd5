"""under_load.py tells a run that fails, and leaves no loop behind, even where it is killed."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPT = sys.argv.pop(1)


def start(*arguments):
    return subprocess.Popen([sys.executable, SCRIPT, *arguments], stdout=subprocess.PIPE, text=True)


def name_of(pid):
    """None where the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            name, state = file.read().partition("(")[2].rpartition(")")[::2]
        return None if state.split()[0] == "Z" else name
    except (FileNotFoundError, ProcessLookupError):
        return None


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return {int(child): name_of(int(child)) for child in file.read().split()}


class UnderLoad(unittest.TestCase):
    def test_counts_the_runs(self):
        process = start("3", "1", "true")
        self.assertEqual(process.communicate()[0], "3 runs under load passed\n")
        self.assertEqual(process.returncode, 0)

    def test_tells_the_run_that_failed(self):
        process = start("3", "1", "sh", "-c", "echo what it said; exit 7")
        said = process.communicate()[0]
        self.assertIn("what it said\nrun 1 of 3 under load ended with status 7", said)
        self.assertEqual(process.returncode, 1)

    def test_runs_several_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = f"{folder}/pipe"
            os.mkfifo(pipe)  # either waits for the other
            process = start("2", "1", "sh", "-c", f"echo a >{pipe}", "--", "sh", "-c", f"read a <{pipe}")
            self.assertEqual(process.communicate()[0], "2 runs under load passed\n")
        process = start("1", "1", "true", "--", "false", "--", "true")
        self.assertIn("ended with status 1: false", process.communicate()[0])
        self.assertEqual(process.returncode, 1)

    def test_loops_end_with_it(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = start("1", "2", "sleep", "1000")
            while "sleep" not in (started := children(process.pid)).values():
                time.sleep(0.01)
            self.assertEqual(len(started), 3)  # two loops and the program
            process.send_signal(number)
            process.wait()
            process.stdout.close()
            for child, name in started.items():
                if number == signal.SIGKILL and name == "sleep":
                    os.kill(child, signal.SIGKILL)  # nobody is left to end it
                while name_of(child) is not None:
                    time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
