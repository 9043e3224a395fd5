"""The pages of docs/ as the site has them, with those that they link to elsewhere in the repository."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sources import Sources
from text import ROOT

DOCS = ROOT / "docs"
#: Where on the site the rest of the repository is.
ELSEWHERE = "repository"
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```.*?^```)$", re.DOTALL | re.MULTILINE)

REFERENCE = """## Reference

Every public name, of headers and docstrings, and every option.

| page | what |
|---|---|
| [Python](reference/python.rst) | the package `thalia_checkpoint`, a page a module |
| [C++](reference/cpp.rst) | a page a public header |
| [C](reference/c.rst) | `thalia/c.h` |
| [The program](reference/thalia.rst) | the manual page thalia(1): every command and its options |

"""


def place_of(path: Path) -> str:
    """Where a file of the repository is on the site."""
    inside = path.relative_to(ROOT)
    return str(inside.relative_to("docs")) if inside.parts[0] == "docs" else f"{ELSEWHERE}/{inside}"


class Pages:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._waiting = sorted(DOCS.glob("*/*.md"))
        self._done: set[Path] = set()

    def write(self) -> None:
        self._write_index()
        while self._waiting:
            path = self._waiting.pop()
            if path not in self._done:
                self._done.add(path)
                self._copy(path)

    def _copy(self, path: Path) -> None:
        if path.suffix != ".md":
            self._sources.put(place_of(path), path.read_bytes())
            return
        text = self._with_links(path, path.read_text(encoding="utf-8"))
        if path not in self._listed:
            text = f"---\norphan: true\n---\n\n{text}"
        self._sources.put(place_of(path), text)

    def _with_links(self, path: Path, text: str) -> str:
        """Links as they are on the site. A folder has no page: its name stays."""

        def changed(found: re.Match[str]) -> str:
            shown, link = found[1], found[2]
            if "://" in link or link.startswith("#"):
                return found[0]
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve()
            if not target.exists() or not target.is_relative_to(ROOT):
                return found[0]  # dead: Sphinx says so
            if target.is_dir():
                return shown
            if target != DOCS / "index.md":
                self._waiting.append(target)
            way = os.path.relpath(place_of(target), Path(place_of(path)).parent)
            return f"[{shown}]({way}{'#' + anchor if anchor else ''})"

        # Blocks of code stay as they are.
        return "".join(part if part.startswith("```") else LINK.sub(changed, part) for part in FENCE.split(text))

    def _write_index(self) -> None:
        """The first page, and from its tables what is listed on all pages."""
        text = (DOCS / "index.md").read_text(encoding="utf-8")
        # What says how the site is made is of no use on it.
        text = re.sub(r"^.*`tools/site`.*\n", "", text, flags=re.MULTILINE)
        text = self._with_links(DOCS / "index.md", text.replace("## Format", f"{REFERENCE}## Format", 1))
        self._listed = set()
        lists = []
        for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            links = [link.partition("#")[0] for _, link in LINK.findall(section) if "://" not in link]
            entries = [re.sub(r"\.(md|rst)$", "", link) for link in dict.fromkeys(links)]
            lists.append(
                f"```{{toctree}}\n:hidden:\n:caption: {section.splitlines()[0]}\n\n" + "\n".join(entries) + "\n```"
            )
            for link in links:
                inside = link.removeprefix(f"{ELSEWHERE}/")
                self._listed.add(ROOT / inside if inside != link else DOCS / link)
        self._sources.put("index.md", "\n\n".join([text, *lists]) + "\n")
