"""The reference of Python: a page a public module, of its sources and of the stub of the compiled module.

Nothing is imported, so the frameworks are not needed.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import griffe
from sources import Sources
from text import document, inline, titled

PACKAGE = "thalia_checkpoint"
PLACE = "reference/python"
UP = "../../"


class Package:
    def __init__(self, folder: Path) -> None:
        self._package = griffe.load(PACKAGE, search_paths=[folder], allow_inspection=False, resolve_aliases=True)
        self.modules = {PACKAGE: self._package}
        for name, member in sorted(self._package.members.items()):
            if not name.startswith("_") and not member.is_alias and member.is_module:
                self.modules[f"{PACKAGE}.{name}"] = member
        #: Public names, and their modules; the first is the package itself.
        self._names: dict[str, tuple[str, str]] = {}
        for module in self.modules:
            for name in self.exported(module):
                thing = self.thing(module, name)
                kind = "class" if thing.is_class else "func" if thing.is_function else "obj"
                self._names.setdefault(name, (f"{module}.{name}", kind))

    def exported(self, module: str) -> list[str]:
        names = [str(name) for name in self.modules[module].exports or []]
        assert names, f"{module} has no __all__"
        return names

    def thing(self, module: str, name: str) -> griffe.Object:
        found = self.modules[module].members[name]
        return found.final_target if found.is_alias else found

    def reference(self, text: str) -> str | None:
        """Of a public name in a text. Words of plain English are none: functions end in (), classes have two parts."""
        bare = text.removesuffix("()").removeprefix("thalia.").removeprefix(f"{PACKAGE}.")
        if bare not in self._names:
            return None
        full, kind = self._names[bare]
        if kind == "func":
            return f":py:func:`{bare}() <{full}>`" if text.endswith("()") else None
        return f":py:{kind}:`{bare} <{full}>`" if re.search(r"[a-z][A-Z]", bare) else None

    def classes(self) -> dict[str, str]:
        return {name: full for name, (full, kind) in self._names.items() if kind == "class"}

    def page(self, module: str) -> str:
        of_module = self.modules[module]
        parts = [titled(module.replace("_", "\\_")), f".. py:module:: {module}"]
        parts.append(self._document(of_module, ()))
        groups: dict[str, list[str]] = {}
        for name in self.exported(module):
            groups.setdefault(self._home(module, name), []).append(name)
        if module == PACKAGE:
            # Parts of the package, each titled by the first sentence of what says what it is for.
            for home, names in sorted(groups.items(), key=lambda group: self._title(group[0])):
                parts.append(titled(inline(self._title(home), UP), "-"))
                parts += [self._thing(module, name) for name in names]
        else:
            parts += [self._thing(module, name) for names in groups.values() for name in names]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _home(self, module: str, name: str) -> str:
        member = self.modules[module].members[name]
        home = member.target_path.rpartition(".")[0] if member.is_alias else module
        return home if home.startswith(f"{PACKAGE}._files") or home.startswith(f"{PACKAGE}._operations") else module

    def _title(self, home: str) -> str:
        if home == PACKAGE:
            return "Errors, and the rest"
        module = self._package[home.removeprefix(f"{PACKAGE}.")]
        return re.split(r"[:;.]\s|\.$", module.docstring.value.splitlines()[0])[0]

    def _document(self, thing: griffe.Object, parameters: tuple[str, ...]) -> str:
        text = thing.docstring.value if thing.docstring else ""
        return document(text, UP, language="python", names=self.reference, parameters=parameters)

    def _thing(self, module: str, name: str) -> str:
        thing = self.thing(module, name)
        if thing.is_class:
            return self._class(name, thing)
        if thing.is_function:
            return self._function("function", name, thing)
        return self._attribute("data", name, thing, listed=True)

    def _declared(self, kind: str, signatures: list[str], body: list[str], options: list[str] | None = None) -> str:
        lines = [f".. py:{kind}:: " + f"\n{' ' * (9 + len(kind))}".join(signatures)]
        lines += [f"   :{option}:" for option in options or []]
        return "\n\n".join(["\n".join(lines), *(textwrap.indent(each, "   ") for each in body if each)])

    def _class(self, name: str, thing: griffe.Class) -> str:
        init = thing.members.get("__init__")
        signature, parameters = name, ()
        body = []
        bases = [str(base).rpartition(".")[2] for base in thing.bases if "Generic" not in str(base)]
        if init is not None and init.is_function and "TypedDict" not in bases:
            signature = name + self._parameters(init, skip_self=True)
            parameters = self._parameter_names(init)
        if bases:
            body.append(f"Bases: {', '.join(f'``{base}``' for base in bases)}")
        body.append(self._document(thing, parameters))
        if init is not None and init.is_function and init.docstring:
            body.append(self._document(init, parameters))
        for member_name, member in self._members(thing).items():
            if member_name.startswith("_"):
                continue
            if member.is_class:
                body.append(self._class(member_name, member))
            elif member.is_function:
                body.append(self._function("method", member_name, member))
            elif member.is_attribute:
                body.append(self._attribute("attribute", member_name, member))
        return self._declared("class", [signature], body)

    def _members(self, thing: griffe.Class) -> dict[str, griffe.Object]:
        """Its own, and those of bases that have no place of their own in the reference."""
        members = {name: member for name, member in thing.members.items() if not member.is_alias}
        for name, member in thing.inherited_members.items():
            owner = member.final_target.parent
            if owner.path.startswith(f"{PACKAGE}.") and owner.name not in self._names:
                members.setdefault(name, member.final_target)
        return members

    def _function(self, kind: str, name: str, thing: griffe.Function) -> str:
        versions = [*(thing.overloads or [])] or [thing]
        signatures = [
            name + self._parameters(each, skip_self=kind == "method") + self._returned(each) for each in versions
        ]
        options = [label for label in ("staticmethod", "classmethod") if label in thing.labels]
        body = [self._document(thing, tuple(each for one in [thing, *versions] for each in self._parameter_names(one)))]
        return self._declared(kind, list(dict.fromkeys(signatures)), body, options)

    def _attribute(self, kind: str, name: str, thing: griffe.Attribute, *, listed: bool = False) -> str:
        options = [] if listed else ["no-contents-entry"]
        if thing.annotation is not None:
            options.append(f"type: {self._plain(str(thing.annotation))}")
        if kind == "data" and thing.value is not None and len(str(thing.value)) < 60:
            options.append(f"value: {thing.value}")
        made = self._declared("property" if "property" in thing.labels else kind, [name], [self._document(thing, ())])
        head, _, rest = made.partition("\n")
        shown = [f"   :{each}" if ": " in each else f"   :{each}:" for each in options]
        return "\n".join([head, *shown, rest]) if shown else made

    @staticmethod
    def _plain(text: str) -> str:
        """A type as it is read: `_core.SaveResult` is `SaveResult`."""
        return re.sub(r"\b(?:_core|typing|collections\.abc|_\w+)\.(?=\w)", "", text)

    @staticmethod
    def _parameter_names(function: griffe.Function) -> tuple[str, ...]:
        return tuple(each.name.lstrip("*") for each in function.parameters)

    def _parameters(self, function: griffe.Function, *, skip_self: bool) -> str:
        parameters = list(function.parameters)
        if skip_self and parameters and "staticmethod" not in function.labels:
            parameters = parameters[1:]
        shown, kinds = [], griffe.ParameterKind
        last = None
        for each in parameters:
            if last == kinds.positional_only and each.kind != kinds.positional_only:
                shown.append("/")
            if each.kind == kinds.keyword_only and last not in (kinds.keyword_only, kinds.var_positional):
                shown.append("*")
            stars = {kinds.var_positional: "*", kinds.var_keyword: "**"}.get(each.kind, "")
            text = stars + each.name
            if each.annotation is not None:
                text += f": {self._plain(str(each.annotation))}"
            if each.default is not None and not stars:
                text += f" = {each.default}"
            shown.append(text)
            last = each.kind
        if last == kinds.positional_only:
            shown.append("/")
        return f"({', '.join(shown)})"

    def _returned(self, function: griffe.Function) -> str:
        return f" -> {self._plain(str(function.returns))}" if function.returns is not None else ""


def write(folder: Path, sources: Sources) -> dict[str, str]:
    """The pages of all public modules, and the list of them. folder: that holds the package, with its stub.

    Gives the classes by the names that annotations have for them.
    """
    package = Package(folder)
    rows, entries = [], []
    for name, module in package.modules.items():
        page = "package" if name == PACKAGE else name.removeprefix(f"{PACKAGE}.")
        sources.put(f"{PLACE}/{page}.rst", package.page(name))
        first = module.docstring.value.split("\n\n")[0]
        rows.append(f"   * - :doc:`{name} </{PLACE}/{page}>`\n     - {inline(first, '../')}")
        # A short name fits the list at the side.
        entries.append(f"   {name.removeprefix(f'{PACKAGE}.')} </{PLACE}/{page}>")
    table = ".. list-table::\n   :widths: 30 70\n\n" + "\n".join(rows)
    listed = ".. toctree::\n   :hidden:\n\n" + "\n".join(entries)
    manual = ":doc:`/use/python` is the manual. Each page here is a public module."
    sources.put("reference/python.rst", "\n\n".join([titled("Python"), manual, table, listed]) + "\n")
    return package.classes()
