"""The table of commands in the program's manual lists exactly what `thalia help` lists."""

import re
import subprocess
import sys
from pathlib import Path

program, page = sys.argv[1:]

rows = [line for line in Path(page).read_text(encoding="utf-8").splitlines() if "| `thalia" in line]
documented = set(re.findall(r"`thalia (\w+)", "\n".join(row.split(" | ")[0] for row in rows)))

overview = subprocess.run([program, "help"], capture_output=True, text=True, check=True).stdout
listed = set(re.findall(r"^  (\w+) ", overview, re.MULTILINE))

if not listed or documented != listed:
    sys.exit(f"the page: {sorted(documented)}\nthalia help: {sorted(listed)}")
