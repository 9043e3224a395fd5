#!/usr/bin/env python3
"""Makes the manual page and the completions of shells: what they say of commands and options.

    tools/documents.py THALIA FOLDER TEMPLATE...

It comes from the program's own tree of commands, `thalia help --json`, and takes the place of the
line MARK of each template; the rest of that is written by hand. The build runs it: what it makes is
in src/cli/documents/ of the build, under the names of PAGES.
"""

import json
import pathlib
import re
import subprocess
import sys

MARK = "@COMMANDS@"
ROFF = str.maketrans({"\\": "\\e", "'": "\\(aq", "-": "\\-", "^": "\\(ha", "~": "\\(ti"})
OWN_GROUP = "Options"  # of one command; the other groups have several


def command_tree(thalia):
    printed = subprocess.run([thalia, "help", "--json"], check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return json.loads(printed.stdout)["commands"]


def own_options(command):
    return [option for option in command["options"] if option["group"] == OWN_GROUP and "--help" not in option["names"]]


def shared_options(tree):
    """{group: {names: (option, the commands that take it)}}, in their order."""
    groups = {}
    for command in tree:
        for option in command["options"]:
            if option["group"] == OWN_GROUP:
                continue
            options = groups.setdefault(option["group"], {})
            known, takers = options.setdefault(tuple(option["names"]), (option, []))
            if known["help"] != option["help"]:
                raise SystemExit(f"{command['name']}: {option['names']} has another help text than elsewhere")
            takers.append(command["name"])
    return groups


def listed(words):
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def roff(text, values=()):
    """A line of text: options bold, what stands for a value in italics."""
    text = text.translate(ROFF)
    text = re.sub(r"(?<![\w-])(?:\\-){1,2}[a-z](?:\w|\\-)*", r"\\fB\g<0>\\fR", text)
    for value in sorted(filter(None, set(values)), key=len, reverse=True):
        text = re.sub(rf"(?<![\w.\\]){re.escape(value)}(?!\w)", r"\\fI\g<0>\\fR", text)
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def roff_options(options):
    for option, takers in options:
        value = option["value"]
        yield ".TP"
        yield roff(", ".join(option["names"]) + f" {value}", [value]).strip()
        yield roff(option["help"], [value] if len(value) > 1 else []) + "."
        if takers:
            yield f"Of {listed(takers)}."


def manual(tree):
    """COMMANDS with the options of each, then those of several commands."""
    yield ".SH COMMANDS"
    for command in tree:
        values = re.findall(r"[A-Z]+", command["usage"])
        usage = roff(f"thalia {command['name']} {command['usage']}".rstrip(), values)
        yield f'.SS "{usage}"'
        values = [word for word in values if len(word) > 1]
        yield from (roff(line, values) for line in command["description"].split("\n"))
        optional = [one | {"names": [], "value": one["name"]} for one in command["arguments"] if not one["required"]]
        yield from roff_options((option, None) for option in optional + own_options(command))
        if groups := [group.upper() for group in shared_options([command])]:
            yield ".PP"
            yield f"Also takes options of {listed(groups)} below."
    for group, options in shared_options(tree).items():
        everyone = {taker for _, takers in options.values() for taker in takers}
        yield f'.SH "{group.upper()} OPTIONS"'
        for option, takers in options.values():
            yield from roff_options([(option, None if set(takers) == everyone else takers)])


def own_and_shared(tree):
    """(commands, option) of each option: one command's own, then those of several."""
    for command in tree:
        help_option = [option for option in command["options"] if "--help" in option["names"]]
        yield from (([command["name"]], option) for option in help_option + own_options(command))
    for options in shared_options(tree).values():
        yield from ((takers, option) for option, takers in options.values())


def places(command):
    """(place, argument): which argument of the command it is, "+" for all that follow."""
    return [("+" if one["several"] else str(at), one) for at, one in enumerate(command["arguments"], 1)]


def single_words(tree):
    """The names of the commands that are in no group."""
    return [command["name"] for command in tree if " " not in command["name"]]


def shell_word(name):
    """A name as one word of a shell; most are one as they are."""
    return quoted(name) if " " in name else name


def bash(tree):
    """Options of each command; what can follow each option that takes a value, and each argument."""
    shared = [option for group in shared_options(tree).values() for option, _ in group.values()]
    taken = [(f"* {word}", option) for option in shared for word in option["names"]]
    for command in tree:
        name = command["name"]
        taken += [(f"{name} {word}", option) for option in own_options(command) for word in option["names"]]
        taken += [(f"{name} {place}", argument) for place, argument in places(command)]
    yield f"_thalia_commands='{' '.join(single_words(tree))}'"
    yield "declare -gA _thalia_options=("
    for command in tree:
        names = [name for option in command["options"] for name in option["names"] if name.startswith("--")]
        yield f"  [{shell_word(command['name'])}]='{' '.join(names)}'"
    yield ")"
    yield "declare -gA _thalia_offers=("
    yield from (f"  ['{key}']='{' '.join(one['offers'])}'" for key, one in taken if one["takes_value"])
    yield ")"


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def brief(option):
    """Of the help what fits beside the option: the text up to its first semicolon or full stop."""
    return re.split(r"; |\. ", option["help"])[0].partition("\n")[0]


def zsh_spec(option):
    """How _arguments describes an option or an argument: [what is offered in its place]."""
    message = (option.get("name") or option["value"]).translate({ord(":"): "\\:"})
    offers = " ".join(option["offers"]).replace(":", "\\:")
    return f":{message}:{{_thalia_offer {offers}}}"


def zsh(tree):
    """A description of each command; for each command what _arguments takes."""
    yield "_thalia_commands=("
    yield from (f"  {quoted(one['name'] + ':' + one['brief'])}" for one in tree if " " not in one["name"])
    yield ")"
    yield "_thalia_specs() {"
    yield "  case $1 in"
    for command in tree:
        yield f"    {shell_word(command['name'])})"
        yield "      specs=("
        for option in command["options"]:
            value = zsh_spec(option) if option["takes_value"] else ""
            for name in option["names"]:
                others = "*" if option["several"] else f"({' '.join(option['names'])})"
                ends = ("=" if name.startswith("--") else "+") if value else ""
                about = re.sub(r"[\[\]\\:]", r"\\\g<0>", brief(option))
                yield f"        {quoted(f'{others}{name}{ends}[{about}]{value}')}"
        for place, argument in places(command):
            yield f"        {quoted(('*' if place == '+' else place) + zsh_spec(argument))}"
        yield "      )"
        yield "      ;;"
    yield "  esac"
    yield "}"


def fish_values(option):
    """The words of `complete` that say what comes in the place of an option's value, or an argument."""
    offers = option["offers"]
    words = [word for word in offers if word[0] != "@"]
    words += [f"(__thalia_names {word[1:].replace(':', ' ')})" for word in offers if ":" in word]
    if "@folder" in offers:
        words.append("(__fish_complete_directories)")
    given = f" -a {quoted(' '.join(words))}" if words else ""
    return given + (" -F" if "@file" in offers else "")


def fish(tree):
    """A line for each command, each option and each argument."""
    options = list(own_and_shared(tree))
    with_value = {name for _, option in options if option["takes_value"] for name in option["names"]}
    for commands, option in options:
        if not option["takes_value"] and with_value.intersection(option["names"]):
            raise SystemExit(f"{commands}: {option['names']} takes a value elsewhere")
    yield f"set -g __thalia_with_value {' '.join(sorted(with_value))}"
    yield f"set -g __thalia_pairs {' '.join(quoted(one['name']) for one in tree if ' ' in one['name'])}"
    for command in tree:
        group, _, word = command["name"].rpartition(" ")
        at = f"1 {group}" if group else "0"
        yield f"complete -c thalia -n '__thalia_at {at}' -a {word} -d {quoted(command['brief'])}"
    for commands, option in options:
        names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option["names"]]
        value = (" -r" if "@file" in option["offers"] else " -x") * option["takes_value"] + fish_values(option)
        about = f"{' '.join(names)} -d {quoted(brief(option))}{value}"
        of = " ".join(f'"{name}"' if " " in name else name for name in commands)
        yield f"complete -c thalia -n '__thalia_of {of}' {about}"
    groups = {command["name"].partition(" ")[0] for command in tree if " " in command["name"]}
    for command in tree:
        # Those of a group are listed above, each with what it does.
        for place, argument in [] if command["name"] in groups else places(command):
            if argument["offers"]:
                at = f"{len(command['arguments'])}+" if place == "+" else place
                name = f'"{command["name"]}"' if " " in command["name"] else command["name"]
                yield f"complete -c thalia -n '__thalia_at {at} {name}'{fish_values(argument)}"


# Of each template, what takes the place of the mark, and the name of the page.
PAGES = {
    "thalia.1.in": (manual, "thalia.1"),
    "thalia.bash.in": (bash, "thalia"),
    "thalia.zsh.in": (zsh, "_thalia"),
    "thalia.fish.in": (fish, "thalia.fish"),
}


def page(template, tree):
    """(name, text) of the page that is made of the template."""
    make, name = PAGES[template.name]
    before, after = template.read_text(encoding="utf-8").split(f"\n{MARK}\n")
    return name, "\n".join([before, *make(tree), after])


def main():
    thalia, folder, *templates = sys.argv[1:]
    tree = command_tree(thalia)
    for template in templates:
        name, text = page(pathlib.Path(template), tree)
        (pathlib.Path(folder) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
