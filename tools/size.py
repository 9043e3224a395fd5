#!/usr/bin/env python3
"""Prints how large the tree is, as the table in docs/contribute/architecture.md has it.

    tools/size.py [ROOT]

ROOT is a checkout, by default this one. Only files that git tracks count, and all of their lines.
"""

import pathlib
import re
import statistics
import subprocess
import sys

CXX = (".h", ".cc")
# A definition, not a mention or a declaration ahead.
TYPE = re.compile(r"^ *(?:template <[^\n]*>\s*)?(?:enum class|struct|class) (\w+)[^;(){]*\{", re.MULTILINE)
# What was checked in once.
GENERATED = ("thalia.1", "thalia.bash", "thalia.zsh", "thalia.fish")


def measure(root):
    """(what, how many) of each row."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True, capture_output=True, text=True)
    names = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]

    def files(folder, *endings):
        found = [name for name in names if name.startswith(folder) and name.endswith(endings)]
        return {name: (root / name).read_text(encoding="utf-8") for name in found}

    def lines(found):
        return [text.count("\n") for text in found.values()]

    sources = files("src/", *CXX)
    headers = {name: text for name, text in sources.items() if name.endswith(".h")}
    public = files("include/thalia/", ".h")
    types = [name for text in public.values() for name in TYPE.findall(text)]
    python = files("python/thalia_checkpoint/", ".py")
    tests = files("tests/", *CXX, ".py", ".sh")
    docs = files("docs/", ".md")
    folders = {}
    for name in sources:
        folders[name.rpartition("/")[0]] = folders.get(name.rpartition("/")[0], 0) + 1
    in_range = sum(80 <= count <= 250 for count in lines(sources))
    most, where = max((count, name) for name, count in folders.items())
    return [
        ("`src`, C++: lines", sum(lines(sources))),
        ("`src`, C++: files", len(sources)),
        ("of these, files of 80 to 250 lines", in_range),
        ("of these, headers", len(headers)),
        ("lines of a header, median", int(statistics.median(lines(headers)))),
        (f"files in the largest folder of `src` (`{where.removeprefix('src/')}`)", most),
        ("`include`: lines", sum(lines(public))),
        ("`include`: headers", len(public)),
        ("`include`: types", len(types)),
        ("of these, named `…Options`", sum(name.endswith("Options") for name in types)),
        ("of these, named `…Result` or `…Report`", sum(name.endswith(("Result", "Report")) for name in types)),
        ("`python`: lines", sum(lines(python))),
        ("`python`: files", len(python)),
        ("tests: lines", sum(lines(tests))),
        ("tests: files", len(tests)),
        ("`docs`: lines", sum(lines(docs))),
        ("`docs`: pages", len(docs)),
        ("README: lines", (root / "README.md").read_text(encoding="utf-8").count("\n")),
        ("generated, checked in: lines", sum(sum(lines(files("", f"/{name}"))) for name in GENERATED)),
    ]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
    for what, count in measure(root):
        print(f"| {what} | {count:,} |")


if __name__ == "__main__":
    main()
