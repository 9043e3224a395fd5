"""Writes the first block of a language of a Markdown file to a source file, its line numbers kept.

usage: extract_example.py LANGUAGE PAGE SOURCE
"""

import sys
from pathlib import Path


def extract(text, language):
    lines = text.splitlines()
    begin = lines.index(f"```{language}") + 1
    end = lines.index("```", begin)
    return f'#line {begin + 1} "README.md"\n' + "\n".join(lines[begin:end]) + "\n"


language, page, source = sys.argv[1:]
Path(source).write_text(extract(Path(page).read_text(encoding="utf-8"), language), encoding="utf-8")
