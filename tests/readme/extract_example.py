"""Writes the examples of a page in C or C++ to a source file, their line numbers kept.

A block with a main() is a program of its own, and then all of its language are: there have to be OF of them, and
NUMBER says which it is, from 1. Otherwise all together are the body of one program, in the order of the page, with
what they include in front.

usage: extract_example.py LANGUAGE PAGE SOURCE [NUMBER OF]
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


def extract(text, language, page, number, programs):
    found = blocks(text, language)
    mains = [any(line.startswith("int main(") for line in lines) for _, lines in found]
    if any(mains):
        if not all(mains) or len(found) != programs:
            sys.exit(f"{page}: {sum(mains)} programs of {len(found)} examples in {language}, expected {programs}")
        begin, lines = found[number - 1]
        return f'#line {begin} "{page}"\n' + "\n".join(lines) + "\n"
    includes, body = [], []
    for begin, lines in found:
        includes += [line for line in lines if line.startswith("#include")]
        body += [f'#line {begin} "{page}"', *("" if line.startswith("#include") else line for line in lines)]
    return "\n".join([*includes, "int main() {", *body, "}", ""])


language, page, source, *which = sys.argv[1:]
number, programs = map(int, which or ("1", "1"))
text = extract(Path(page).read_text(encoding="utf-8"), language, Path(page).name, number, programs)
Path(source).write_text(text, encoding="utf-8")
