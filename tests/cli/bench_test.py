"""What `thalia bench` leaves behind when it is ended.

bench_test.py THALIA
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

THALIA = str(pathlib.Path(sys.argv[1]).resolve())


SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


def heed_signals():
    """A shell's background jobs ignore SIGINT, and what nohup started SIGHUP."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


class Ended(unittest.TestCase):
    def end_by(self, number):
        """Sends the signal when there are files; returns the program's status and error line."""
        with tempfile.TemporaryDirectory() as folder:
            with subprocess.Popen(
                [THALIA, "bench", "--size", "4MiB", "--rounds", "1000"],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=heed_signals,
            ) as process:
                while not list(pathlib.Path(folder).glob("thalia-bench-*/*")):
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
                process.send_signal(number)
                printed = process.communicate()
            self.assertEqual(os.listdir(folder), [])
        return process.returncode, *printed

    def test_by_signals(self):
        for number in SIGNALS:
            self.assertEqual(self.end_by(number), (-number, b"", b""))

    def test_by_a_limit_on_the_size_of_files(self):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run(
                ["bash", "-c", f"trap '' XFSZ; ulimit -f 1024; {THALIA!r} bench --size 4MiB"],
                cwd=folder,
                capture_output=True,
                check=False,
            )
            self.assertEqual(os.listdir(folder), [])
        self.assertEqual(result.returncode, 3)
        self.assertRegex(
            result.stderr,
            rb"\Athalia: \./thalia-bench-[^\n]*at offset 1048576: pwrite failed: [^\n]*\(errno 27\)\n\Z",
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
