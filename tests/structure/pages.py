"""What holds for the pages of documents, and for all that names them."""

import re

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def _anchors(markdown):
    """Anchors of the headings, as the usual renderers make them."""
    for heading in HEADING.findall(markdown):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _text_files(root):
    """(path, text) of the files that people write. A build's and an environment's folders are not looked into."""
    for folder in ("include", "src", "python", "tests", "docs", "bench", "examples", "tools", ".ci", "subprojects"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in TEXT_FILES and path.is_file() and not {".git", "__pycache__"}.intersection(path.parts):
                yield path, path.read_text(encoding="utf-8", errors="replace")
    for path in sorted(root.glob("*")):
        if path.suffix in (".md", ".toml", ".build", ".txt") and path.is_file():
            yield path, path.read_text(encoding="utf-8")


TEXT_FILES = (".h", ".cc", ".in", ".py", ".md", ".build", ".sh", ".txt", ".1", ".toml", "")
# What stands for several pages, as docs/**/*.md, or for any page, is none.
MENTION = re.compile(r"(?<![\w/.-])((?:docs|bench)/[\w/.-]*\.(?:md|1)\b)")
LONGEST_README = 120


def lost_pages(root):
    """Where a text names a page under docs/ or bench/ that is not there."""
    found = []
    for path, text in _text_files(root):
        for mention in MENTION.finditer(text):
            if not (root / mention[1]).exists():
                place = f"{path.relative_to(root)}:{text.count(chr(10), 0, mention.start()) + 1}"
                found.append(f"{place}: {mention[1]}: no such page")
    return found


def too_long_readme(root):
    """README is one page, which leads to the others."""
    lines = (root / "README.md").read_text(encoding="utf-8").count("\n")
    return [f"README.md: {lines} lines; at most {LONGEST_README}"] if lines > LONGEST_README else []


def broken_links(root):
    """Links between the Markdown pages that lead nowhere."""
    found = []
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("*/README.md")]
    for page in sorted([*pages, *root.glob("tests/data/**/README.md")]):
        text = page.read_text(encoding="utf-8")
        for link in LINK.findall(text):
            if "://" in link:
                continue
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            if not target.exists():
                found.append(f"{page.relative_to(root)}: {link}: no such file")
            elif anchor and anchor not in _anchors(target.read_text(encoding="utf-8")):
                found.append(f"{page.relative_to(root)}: {link}: no such heading")
    return found
