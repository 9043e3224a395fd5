"""Checkers of types tell what is wrong: types_told.py INTERPRETER SAMPLE, by mypy and pyright, line by line.

A misspelt option is an error in each call that saves, and open() gives the class that there is.
"""

import json
import os
import re
import subprocess
import sys

interpreter = sys.argv[1]
sample = os.path.relpath(sys.argv[2])  # as mypy names it
with open(sample, encoding="utf-8") as file:
    wrong = {number for number, line in enumerate(file, 1) if line.rstrip().endswith("# wrong")}
if len(wrong) < 9:
    sys.exit(f"{sample}: {len(wrong)} lines are wrong")


def output_of(*command: str) -> str:
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def told_by_mypy() -> set[int]:
    # It sees the package by MYPYPATH, as it is no installed one.
    output = output_of(
        interpreter, "-m", "mypy", "--cache-dir", os.devnull, "--show-error-codes", "--no-error-summary", sample
    )
    return {int(match[1]) for match in re.finditer(rf"^{re.escape(sample)}:(\d+): error:", output, re.MULTILINE)}


def told_by_pyright() -> set[int]:
    output = output_of(sys.executable, "-m", "pyright", sample, "--pythonpath", interpreter, "--outputjson")
    found = json.loads(output)["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}


failed = []
for checker in (told_by_mypy, told_by_pyright):
    told = checker()
    failed += [f"{checker.__name__}: {sample}:{line}: no error" for line in sorted(wrong - told)]
    failed += [f"{checker.__name__}: {sample}:{line}: an error" for line in sorted(told - wrong)]
if failed:
    sys.exit("\n".join(failed))
