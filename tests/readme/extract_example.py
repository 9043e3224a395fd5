"""Writes the first C++ block of a Markdown file to a source file, its line numbers kept."""

import sys
from pathlib import Path


def extract(text):
    lines = text.splitlines()
    begin = lines.index("```cpp") + 1
    end = lines.index("```", begin)
    return f'#line {begin + 1} "README.md"\n' + "\n".join(lines[begin:end]) + "\n"


source = extract(Path(sys.argv[1]).read_text(encoding="utf-8"))
Path(sys.argv[2]).write_text(source, encoding="utf-8")
