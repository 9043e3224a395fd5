"""Comments and docstrings, which are plain text, as reStructuredText."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection
from pathlib import Path

from docutils.nodes import make_id

ROOT = Path(__file__).resolve().parents[2]
#: docs/format/format.md, and the heading that may follow: docs/format/format.md, "Reading"
PAGE = re.compile(r'docs/([\w/-]+)\.md(?:(,\s+)"([^"]+)")?')
#: A line that only code has, in what is indented; else it is a table or a text.
CODE_LINE = {"cpp": re.compile(r"[;{}]$|;\s+//", re.MULTILINE), "python": re.compile("")}

#: Text that is a name, as a reference to it; None of all else.
Names = Callable[[str], str | None]


def no_names(text: str) -> None:
    return None


def escaped(text: str) -> str:
    return re.sub(r"([\\*`_|<>:])", r"\\\1", text)


def anchor_of(page: Path, heading: str) -> str:
    """Where a heading of a page is. Fails where the page has none such: comments name it."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = [each.replace("`", "") for each in headings]
    if heading not in plain:
        raise LookupError(f"{page.name} has no heading {heading!r}")
    return make_id(heading)


def page_link(found: re.Match[str], up: str) -> str:
    name, heading = found[1], found[3] and " ".join(found[3].split())
    page = ROOT / "docs" / f"{name}.md"
    anchor = f"#{anchor_of(page, heading)}" if heading else ""
    shown = f'docs/{name}.md, "{heading}"' if heading else f"docs/{name}.md"
    return f"`{escaped(shown)} <{up}{name}.html{anchor}>`__"


def inline(text: str, up: str, names: Names = no_names) -> str:
    """A paragraph: links to pages, code in backticks, and names that are known. up: the way to the site's root."""
    text = " ".join(text.split())
    pattern = re.compile(rf"(?P<page>{PAGE.pattern})|`(?P<code>[^`]+)`|(?P<name>[A-Za-z_][\w.:/]*\w(?:\(\))?)")
    made, end = [], 0

    def separated(role: str) -> None:
        before = text[found.start() - 1 : found.start()]
        after = text[found.end() : found.end() + 1]
        made.append(("\\ " if before and not before.isspace() else "") + role)
        made.append("\\ " if after and not after.isspace() else "")

    for found in pattern.finditer(text):
        made.append(escaped(text[end : found.start()]))
        end = found.end()
        if found["page"]:
            separated(page_link(PAGE.fullmatch(found["page"]), up))
        elif found["code"]:
            separated(names(found["code"]) or f"``{found['code']}``")
        elif role := names(found["name"]):
            separated(role)
        else:
            made.append(escaped(found["name"]))
    made.append(escaped(text[end:]))
    return "".join(made)


def code_block(text: str, language: str) -> str:
    return f".. code-block:: {language}\n\n{textwrap.indent(textwrap.dedent(text), '   ')}"


def paragraphs(text: str) -> list[str]:
    """Parts between empty lines; indented parts that follow each other are one."""
    parts: list[str] = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        if parts and part.startswith("  ") and parts[-1].startswith("  "):
            parts[-1] += f"\n\n{part}"
        elif part.strip():
            parts.append(part)
    return parts


def flowing(lines: list[str], up: str, names: Names, parameters: Collection[str]) -> list[str]:
    """Lines of one part: prose, items with a dash, and parameters, whose other lines are indented."""
    items: list[tuple[str, str]] = []  # a parameter's name, "-", or "", and the text
    for line in lines:
        named = re.match(r"((?:\*{0,2}\w+, )*\*{0,2}\w+): (.*)", line)
        if named and all(name.strip("*") in parameters for name in named[1].split(", ")):
            items.append((named[1], named[2]))
        elif line.startswith("- "):
            items.append(("-", line[2:]))
        elif items and (line.startswith(" ") or (items[-1][0] == "" and not line.startswith("Raises "))):
            items[-1] = (items[-1][0], f"{items[-1][1]} {line.strip()}")
        else:
            items.append(("", line.strip()))
    made = []
    for name, text in items:
        shown = inline(text, up, names)
        if name == "-":
            made.append(f"- {shown}")
        elif name:
            terms = ", ".join(f"``{each}``" for each in name.split(", "))
            made.append(f"{terms}\n   {shown}")
        else:
            made.append(shown)
    return made


def document(text: str, up: str, *, language: str, names: Names = no_names, parameters: Collection[str] = ()) -> str:
    """A docstring or a comment. What is indented after an empty line is code."""
    made = []
    for part in paragraphs(text):
        if part.startswith("  "):
            made.append(code_block(part, language if CODE_LINE[language].search(part) else "text"))
        else:
            made += flowing(part.splitlines(), up, names, parameters)
    return "\n\n".join(made)


def titled(title: str, line: str = "=") -> str:
    return f"{title}\n{line * len(title)}\n"
