"""Runs a test program in a locale that writes one half as 0,5.

Usage: comma_locale.py PROGRAM [ARGUMENT...]

The locale is made for the run, from the sources that the Debian package locales has.
"""

import os
import subprocess
import sys
import tempfile

NAME = "de_DE.UTF-8"

with tempfile.TemporaryDirectory() as folder:
    command = ["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, NAME)]
    made = subprocess.run(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
    environment = os.environ | {"LOCPATH": folder, "LC_ALL": NAME, "THALIA_TEST_LOCALE": NAME}
    script = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.str(0.5))"
    half = subprocess.run(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    if half != "0,5":
        print(made.stdout)
        print(f"{NAME} could not be made (package locales): one half is '{half}', not '0,5'")
        sys.exit(1 if "CI" in os.environ else 77)
    sys.exit(subprocess.run(sys.argv[1:], env=environment).returncode)
