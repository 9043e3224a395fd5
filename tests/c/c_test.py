"""The C program saves, reads, streams and fails; then C++ reads the files that it left.

usage: c_test.py C_PROGRAM CPP_PROGRAM
"""

import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    for program in sys.argv[1:]:
        status = subprocess.run([program, folder], check=False).returncode
        if status != 0:
            sys.exit(f"{program} ended with status {status}")
