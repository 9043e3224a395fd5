"""The manual page thalia(1), as the build makes it, on the site: its roff as reStructuredText.

It knows what the page has, and fails at all else.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from sources import Sources
from text import code_block, escaped, inline, titled

PLACE = "reference/thalia"
UP = "../"
ESCAPES = {"-": "-", "e": "\\", "(aq": "'", "(dq": '"', "(ha": "^", "(ti": "~", "&": ""}
#: Fonts of each macro, which take turns.
FONTS = {"B": "B", "I": "I", "BR": "BR", "RB": "RB", "IR": "IR", "RI": "RI"}
#: Around what is in italics: what stands for a value.
OPEN, CLOSE = "\ue000", "\ue001"


def plain(text: str) -> str:
    """Without escapes; fonts stay."""

    def meant(found: re.Match[str]) -> str:
        if found[1][0] == "f":
            return found[0]
        return ESCAPES[found[1]]

    return re.sub(r"\\(f[BIR]|\(..|.)", meant, text)


def in_font(font: str, text: str) -> str:
    if font == "R" or not text.strip():
        return text
    return f"`{text.strip()}`" if font == "B" else f"{OPEN}{text}{CLOSE}"


def marked(line: str) -> str:
    """A line of text, or of a macro of fonts: code in backticks, values between OPEN and CLOSE."""
    macro = re.fullmatch(r"\.([BIR]{1,2}) (.+)", line)
    if macro:
        words = [quoted or word for quoted, word in re.findall(r'"([^"]*)"|(\S+)', macro[2])]
        fonts = FONTS[macro[1]]
        if len(fonts) == 1:
            return in_font(fonts, plain(" ".join(words)))
        return "".join(in_font(fonts[at % 2], plain(word)) for at, word in enumerate(words))
    if line.startswith((".", "'")):
        raise ValueError(f"the manual page has a line that its site does not know: {line}")
    made, font = "", "R"
    for part in re.split(r"(\\f[BIR])", plain(line)):
        if re.fullmatch(r"\\f[BIR]", part):
            font = part[-1]
        else:
            made += in_font(font, part)
    return made


def without_marks(text: str) -> str:
    return re.sub(f"[`{OPEN}{CLOSE}]", "", text)


def shown(text: str) -> str:
    made = inline(text, UP)
    return re.sub(f"{OPEN}(.*?){CLOSE}", r"\\ *\1*\\ ", made).strip()


class Manual:
    def __init__(self, text: str) -> None:
        self._lines = iter(text.splitlines())

    def page(self) -> str:
        parts = [
            titled("thalia(1)"),
            ":doc:`/use/program` is for a start. This is all of ``man thalia``: every command, and its options.",
        ]
        return "\n\n".join([*parts, *self._parts()]) + "\n"

    def _parts(self) -> Iterator[str]:
        text: list[str] = []
        term = ""

        def ended() -> Iterator[str]:
            nonlocal term
            body = shown(" ".join(text))
            text.clear()
            if term:
                yield self._item(term, body)
            elif body:
                yield body
            term = ""

        for line in self._lines:
            macro, _, rest = line.partition(" ")
            if macro not in (".TH", ".SH", ".SS", ".TP", ".PP", ".nf"):
                text.append(marked(line))
                continue
            yield from ended()
            name = without_marks(marked(rest.strip('"')))
            if macro == ".SH":
                yield f"{titled(escaped(name.capitalize()), '-')}\n.. program:: thalia"
            elif macro == ".SS":
                command = re.match(r"thalia(?: [a-z-]+)*", name)[0]
                yield f"{titled(command, '~')}\n.. program:: {command}"
                yield code_block(name, "text")
            elif macro == ".TP":
                term = marked(next(self._lines))
            elif macro == ".nf":
                yield code_block("\n".join(iter(lambda: plain(next(self._lines)), ".fi")), "sh")
        yield from ended()

    def _item(self, term: str, body: str) -> str:
        name = without_marks(term)
        if name.startswith("-"):
            return f".. option:: {name}\n   :no-contents-entry:\n\n{textwrap.indent(body, '   ')}"
        return f"{shown(term)}\n{textwrap.indent(body, '   ')}"


def write(page: Path, sources: Sources) -> None:
    sources.put(f"{PLACE}.rst", Manual(page.read_text(encoding="utf-8")).page())
