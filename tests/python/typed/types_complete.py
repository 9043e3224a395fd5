"""Every public name has a type, by pyright --verifytypes; but for what classes of packages without types inherit."""

import json
import subprocess
import sys

INHERITED = ("Type of metaclass unknown", "Type of base class")

command = [sys.executable, "-m", "pyright", "--verifytypes", "thalia_checkpoint", "--ignoreexternal", "--outputjson"]
report = json.loads(subprocess.run(command, check=False, capture_output=True, text=True).stdout)["typeCompleteness"]
wrong = [
    f"{symbol['name']}: {found['message']}"
    for symbol in report["symbols"]
    for found in symbol["diagnostics"]
    if found["severity"] == "error" and not found["message"].startswith(INHERITED)
]
if wrong or len(report["symbols"]) < 500:
    sys.exit("\n".join([*wrong, f"{len(report['symbols'])} names"]))
