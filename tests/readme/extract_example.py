"""Writes the examples of a page in C or C++ to a source file, their line numbers kept.

A block with a main() is a program of its own, and has to be the only one of its language. All others
together are the body of one program, in the order of the page, with what they include in front.

usage: extract_example.py LANGUAGE PAGE SOURCE
"""

import sys
from pathlib import Path


def blocks(text, language):
    """(number of the first line, lines) of each."""
    found, lines = [], text.splitlines()
    for begin, line in enumerate(lines, 1):
        if line == f"```{language}":
            found.append((begin + 1, lines[begin : lines.index("```", begin)]))
    return found


def extract(text, language, page):
    found = blocks(text, language)
    if any(line.startswith("int main(") for _, lines in found for line in lines):
        if len(found) != 1:
            sys.exit(f"{page}: a program of its own beside other examples in {language}")
        begin, lines = found[0]
        return f'#line {begin} "{page}"\n' + "\n".join(lines) + "\n"
    includes, body = [], []
    for begin, lines in found:
        includes += [line for line in lines if line.startswith("#include")]
        body += [f'#line {begin} "{page}"', *("" if line.startswith("#include") else line for line in lines)]
    return "\n".join([*includes, "int main() {", *body, "}", ""])


language, page, source = sys.argv[1:]
Path(source).write_text(extract(Path(page).read_text(encoding="utf-8"), language, Path(page).name), encoding="utf-8")
