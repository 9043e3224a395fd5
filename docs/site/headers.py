"""The reference of C++ and C: a page a public header, of what doxygen has read of it."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from sources import Sources
from text import ROOT, code_block, document, escaped, inline, titled

INCLUDE = ROOT / "include"
#: Where the pages lie, from the site's root.
PLACE = "reference"


@dataclass
class Docs:
    """The XML of doxygen: what is in each header, in the order of its lines."""

    folder: Path
    compounds: dict[str, Element] = field(default_factory=dict)
    by_header: dict[str, list[tuple[int, Element]]] = field(default_factory=dict)
    #: Types and where they are: their names as references.
    types: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        index = ElementTree.parse(self.folder / "index.xml").getroot()
        for compound in index.iter("compound"):
            name = compound.attrib["refid"]
            if compound.attrib["kind"] not in ("class", "struct", "union", "namespace", "file"):
                continue
            found = ElementTree.parse(self.folder / f"{name}.xml").getroot().find("compounddef")
            assert found is not None, name
            self.compounds[name] = found
            if compound.attrib["kind"] in ("namespace", "file"):
                for member in found.iter("memberdef"):
                    self._add(member)
        nested = {
            inner.attrib["refid"]
            for each in self.compounds.values()
            if each.attrib["kind"] in ("class", "struct", "union")
            for inner in each.findall("innerclass")
        }
        for name, found in self.compounds.items():
            if found.attrib["kind"] in ("class", "struct", "union") and name not in nested:
                self._add(found)

    def _add(self, thing: Element) -> None:
        location = thing.find("location")
        if location is None or not location.attrib["file"].startswith("thalia/"):
            return
        things = self.by_header.setdefault(location.attrib["file"], [])
        if all(each.attrib["id"] != thing.attrib["id"] for _, each in things):
            things.append((int(location.attrib["line"]), thing))
        name = (thing.findtext("compoundname") or thing.findtext("qualifiedname") or "").removeprefix("thalia::")
        if thing.tag == "compounddef" or thing.attrib["kind"] in ("enum", "typedef"):
            self.types[name] = domain_of(location.attrib["file"])

    def in_header(self, header: str) -> list[Element]:
        return [thing for _, thing in sorted(self.by_header.get(header, []), key=lambda each: each[0])]


def domain_of(header: str) -> str:
    return "c" if header.startswith("thalia/c/") or header == "thalia/c.h" else "cpp"


def flat(element: Element | None) -> str:
    """Its text in one line, without the spaces that doxygen puts into templates."""
    text = " ".join("".join(element.itertext()).split()) if element is not None else ""
    text = re.sub(r"(?<=\d) (?='\d)", "", text)  # 100'000
    return re.sub(r"< (?=\S)", "<", text).replace(" >", ">")


class Header:
    """A page: what is declared, with its comments."""

    def __init__(self, docs: Docs, header: str) -> None:
        self._docs = docs
        self.header = header
        self._domain = domain_of(header)
        self._up = "../" * (len(Path(PLACE, header).parts) - 1)
        self._text = (INCLUDE / header).read_text(encoding="utf-8")

    def page(self) -> str:
        parts = [titled(self.header)]
        head = re.match(r"(?://.*\n)+", self._text)
        assert head, f"{self.header} does not say what it is for"
        parts.append(document(self._plain(head[0]), self._up, language="cpp", names=self._name))
        parts.append(code_block(f'#include "{self.header}"', "cpp"))
        included = re.findall(r'^#include "(thalia/[^"]+)"', self._text, re.MULTILINE)
        things = self._docs.in_header(self.header)
        if not things:
            parts.append("It includes:")
            parts += [f"- :doc:`/{PLACE}/{each.removesuffix('.h')}`" for each in included]
        if self._domain == "cpp":
            parts.append(".. cpp:namespace:: thalia")
        parts += [made for thing in things if (made := self._thing(thing))]
        return "\n\n".join(parts) + "\n"

    @staticmethod
    def _plain(comment: str) -> str:
        return "\n".join(line.removeprefix("//").removeprefix(" ") for line in comment.splitlines())

    def _name(self, text: str) -> str | None:
        """A reference to a type, where a comment names one; not to a word of plain English."""
        if text in self._docs.by_header or text in DOORS:
            return f":doc:`{text} </{PLACE}/{text.removesuffix('.h')}>`"
        bare = text.removeprefix("thalia::")
        if bare in self._docs.types and (re.search(r"[a-z][A-Z]", bare) or "_" in bare):
            return f":{self._docs.types[bare]}:type:`{bare}`"
        return None

    def _thing(self, thing: Element, owner: str = "") -> str:
        if thing.tag == "compounddef":
            return self._class(thing, owner)
        kind = thing.attrib["kind"]
        if thing.attrib.get("prot", "public") != "public" or kind == "friend":
            return ""
        return {
            "enum": self._enum,
            "function": self._function,
            "typedef": self._typedef,
            "variable": self._variable,
            "define": self._define,
        }[kind](thing)

    def _declared(self, kind: str, what: str, thing: Element, inner: list[str], *, listed: bool = True) -> str:
        lines = [f".. {self._domain}:{kind}:: {what}"]
        if not listed:
            lines.append("   :no-contents-entry:")
        body = [self._comment(thing), *inner]
        return "\n\n".join(["\n".join(lines), *(textwrap.indent(each, "   ") for each in body if each)])

    def _class(self, thing: Element, owner: str) -> str:
        name = flat(thing.find("compoundname")).removeprefix("thalia::").removeprefix(f"{owner}::")
        bases = [flat(base) for base in thing.findall("basecompoundref") if base.attrib.get("prot") == "public"]
        bases = [base for base in bases if "detail::" not in base]
        members = [(self._line(each), each) for each in thing.iter("memberdef")]
        for inner in thing.findall("innerclass"):
            if inner.attrib.get("prot") == "public":
                compound = self._docs.compounds[inner.attrib["refid"]]
                members.append((self._line(compound), compound))
        full = f"{owner}::{name}" if owner else name
        made = [self._thing(each, full) for _, each in sorted(members, key=lambda each: each[0])]
        kind = thing.attrib["kind"]
        inherits = f" : public {', '.join(bases)}" if bases else ""
        return self._declared(kind, f"{self._template(thing)}{name}{inherits}", thing, made)

    def _enum(self, thing: Element) -> str:
        values = []
        for value in thing.findall("enumvalue"):
            start = flat(value.find("initializer"))
            shown = f"{value.findtext('name')} {start}".rstrip()
            values.append(self._declared("enumerator", shown, value, [], listed=False))
        name = thing.findtext("name") or ""
        if not name or name.startswith("@"):
            return "\n\n".join([each for each in (self._comment(thing), *values) if each])
        return self._declared("enum-class" if thing.attrib.get("strong") == "yes" else "enum", name, thing, values)

    def _function(self, thing: Element) -> str:
        name, arguments = thing.findtext("name") or "", flat(thing.find("argsstring"))
        if arguments.endswith(("=delete", "= delete")) or name.startswith("~"):
            return ""
        arguments = re.sub(r" ?=default$", " = default", arguments)
        before = "static " if thing.attrib.get("static") == "yes" else ""
        before += "explicit " if thing.attrib.get("explicit") == "yes" else ""
        before += "virtual " if thing.attrib.get("virt") != "non-virtual" and "override" not in arguments else ""
        returns = re.sub(r"\b(constexpr|inline|extern|virtual|explicit) ", "", flat(thing.find("type")))
        if self._domain == "c":
            before = ""
        return self._declared("function", f"{self._template(thing)}{before}{returns} {name}{arguments}", thing, [])

    def _typedef(self, thing: Element) -> str:
        name, what = thing.findtext("name") or "", flat(thing.find("type"))
        if self._domain == "cpp":
            return self._declared("type", f"{self._template(thing)}{name} = {what}", thing, [])
        if what == f"struct {name}":
            opaque = not any(flat(each.find("compoundname")) == name for each in self._docs.compounds.values())
            return self._declared("struct", name, thing, []) if opaque else ""
        return self._declared("type", f"{what} {name}{flat(thing.find('argsstring'))}", thing, [])

    def _variable(self, thing: Element) -> str:
        what, name = flat(thing.find("type")), thing.findtext("name")
        start = flat(thing.find("initializer"))
        start = start if start.startswith("=") or not start else f"= {start}"
        start = re.sub(r"(?<=[{ ])\.\w+ = ", "", start)  # Sphinx knows no designated initializers
        before = "static " if thing.attrib.get("static") == "yes" and not what.startswith("static") else ""
        shown = f"{before}{what} {name}{flat(thing.find('argsstring'))} {start}".rstrip()
        return self._declared("member", re.sub(r"\b(inline|mutable) ", "", shown), thing, [], listed=False)

    def _define(self, thing: Element) -> str:
        name = thing.findtext("name") or ""
        if self._domain == "cpp":
            return ""
        parameters = [each.findtext("defname") or "" for each in thing.findall("param")]
        return self._declared("macro", f"{name}({', '.join(parameters)})" if parameters else name, thing, [])

    @staticmethod
    def _line(thing: Element) -> int:
        location = thing.find("location")
        return int(location.attrib["line"]) if location is not None else 0

    @staticmethod
    def _template(thing: Element) -> str:
        parameters = thing.find("templateparamlist")
        if parameters is None:
            return ""
        shown = []
        for each in parameters.findall("param"):
            name, start = flat(each.find("declname")), flat(each.find("defval"))
            shown.append(f"{flat(each.find('type'))} {name}".rstrip() + (f" = {start}" if start else ""))
        requires = flat(thing.find("requiresclause"))
        return f"template<{', '.join(shown)}> " + (f"requires {requires} " if requires else "")

    # Comments

    def _comment(self, thing: Element) -> str:
        parts: list[str] = []
        for name in ("briefdescription", "detaileddescription"):
            for each in thing.findall(name):
                parts += self._blocks(each)
        return "\n\n".join(parts)

    def _blocks(self, element: Element) -> list[str]:
        """Paragraphs and what lies among them."""
        made, text = [], ""

        def flush() -> None:
            nonlocal text
            if text.strip():
                made.append(inline(text, self._up, self._name))
            text = ""

        def walk(parent: Element) -> None:
            nonlocal text
            text += parent.text or ""
            for child in parent:
                if child.tag == "para":
                    flush()
                    walk(child)
                    flush()
                elif child.tag in ("verbatim", "programlisting", "preformatted"):
                    flush()
                    lines = child.findall("codeline")
                    shown = "\n".join(self._code_line(each) for each in lines) if lines else "".join(child.itertext())
                    made.append(code_block(shown, "c" if self._domain == "c" else "cpp"))
                elif child.tag in ("itemizedlist", "orderedlist"):
                    flush()
                    made.append("\n".join(f"- {self._inline_of(item)}" for item in child.findall("listitem")))
                elif child.tag == "parameterlist":
                    flush()
                    made.extend(self._listed(child))
                elif child.tag == "simplesect":
                    flush()
                    kind = {"return": "Returns ", "note": "Note: "}.get(child.attrib["kind"], "")
                    made.append(kind + self._inline_of(child))
                elif child.tag == "table":
                    flush()
                    made.append(self._table(child))
                elif child.tag == "computeroutput":
                    text += f"`{''.join(child.itertext())}`"
                else:
                    text += "".join(child.itertext())
                text += child.tail or ""

        walk(element)
        flush()
        return made

    def _inline_of(self, element: Element) -> str:
        return " ".join(self._blocks(element))

    @staticmethod
    def _code_line(line: Element) -> str:
        for space in line.iter("sp"):
            space.text = " "
        return "".join(line.itertext())

    def _listed(self, element: Element) -> list[str]:
        made = []
        for item in element.findall("parameteritem"):
            names = [flat(each) for each in item.iter("parametername")]
            said = self._inline_of(item.find("parameterdescription"))
            if element.attrib["kind"] == "exception":
                joined = "" if not said or said[0] in ",.;" else " "
                made.append(
                    f"**Throws** {', '.join(self._name(each) or escaped(each) for each in names)}{joined}{said}"
                )
            else:
                made.append(f"{', '.join(f'``{each}``' for each in names)}\n   {said}")
        return made

    def _table(self, table: Element) -> str:
        rows = [[self._inline_of(cell) for cell in row.findall("entry")] for row in table.findall("row")]
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for row in rows:
            lines += [f"   {'* ' if i == 0 else '  '}- {cell}" for i, cell in enumerate(row)]
        return "\n".join(lines)


#: Sections of the list of pages: what they are titled, and the headers that include all others of theirs.
DOORS = {
    "thalia/thalia.h": "Files",
    "thalia/state.h": "States of networks",
    "thalia/formats.h": "Files of other programs",
    "thalia/store.h": "The folder of a run",
    "thalia/c.h": "C",
}


def headers() -> list[str]:
    found = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.h"))
    return [each for each in found if not each.startswith("thalia/detail/")]


def door_of(header: str) -> str:
    room = Path(header).parts[1]
    return f"thalia/{room}.h" if f"thalia/{room}.h" in DOORS else header if header in DOORS else "thalia/thalia.h"


def write(xml: Path, sources: Sources) -> None:
    """The pages of all public headers, and the lists of those of C++ and of C."""
    docs = Docs(xml)
    pages: dict[str, list[str]] = {door: [door] for door in DOORS}
    for header in headers():
        sources.put(f"{PLACE}/{header.removesuffix('.h')}.rst", Header(docs, header).page())
        if header not in DOORS:
            pages[door_of(header)].append(header)
    missing = {header for header in docs.by_header if header not in headers()}
    assert not missing, missing

    def first_line(header: str) -> str:
        head = re.match(r"(?://.*\n)+", (INCLUDE / header).read_text(encoding="utf-8"))
        said = document(Header._plain(head[0]), "../", language="cpp").split("\n\n")[0]
        return re.split(r"(?<=[.;]) ", said)[0].removesuffix(";")

    for name, title, doors in (("cpp", "C++", list(DOORS)[:-1]), ("c", "C", ["thalia/c.h"])):
        manual = f":doc:`/use/{name}` is the manual. Each page here is a public header."
        parts = [titled(title), manual]
        for door in doors:
            if len(doors) > 1:
                parts.append(titled(DOORS[door], "-"))
            rows = "\n".join(
                f"   * - :doc:`{header} </{PLACE}/{header.removesuffix('.h')}>`\n     - {first_line(header)}"
                for header in pages[door]
            )
            parts.append(f".. list-table::\n   :widths: 30 70\n\n{rows}")
            entries = "\n".join(f"   /{PLACE}/{header.removesuffix('.h')}" for header in pages[door])
            parts.append(f".. toctree::\n   :hidden:\n\n{entries}")
        sources.put(f"{PLACE}/{name}.rst", "\n\n".join(parts) + "\n")
