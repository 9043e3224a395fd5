"""What programs in C were compiled with stays: the soname, the exported functions, the numbers of the constants, the
members of the structs, each at its place. tests/c/abi.txt lists them, as of the last change that was accepted.

usage: abi_test.py [--accept] LIBRARY VERSION HEADERS COMPILER…

A line may be added to the list, with --accept. None may go or change while the soname stays, but for the size of a
struct that begins with `size`, which may grow.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

LIST = Path(__file__).with_name("abi.txt")
EXPORTED_CPP = re.compile(r"_Z(N|NK|ZN|ZNK|GVN|GVZN|TIN|TSN|TVN|TTN|Thn\d+_N|Tv\d+_n\d+_N)6thalia")


def declarations(headers):
    """The headers of the C interface as one text, without comments, preprocessor and line ends."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(headers.glob("thalia/c/*.h")))
    text = re.sub(r"/\*.*?\*/", "", re.sub(r"//.*", "", text), flags=re.DOTALL)
    text = re.sub(r'^#.*|^extern "C" \{$|^\}[ \t]*$', "", text, flags=re.MULTILINE)
    return " ".join(text.split())


def parts(text):
    """(names of constants, {struct: [declarations of members]}, [functions])"""
    constants = []
    for body in re.findall(r"enum \{(.*?)\};", text):
        constants += re.findall(r"(THALIA_\w+)", body)
    structs = {
        name: [member.strip() for member in body.split(";") if member.strip()]
        for body, name in re.findall(r"typedef struct \w+ \{([^{}]*)\} (\w+);", text)
    }
    rest = re.sub(r"enum \{.*?\};|typedef struct \w+ \{[^{}]*\} \w+;|typedef [^;]*;", "", text)
    functions = [function.strip() for function in rest.split(";") if function.strip()]
    return constants, structs, functions


def name_of(member):
    pointer = re.search(r"\(\*(\w+)\)", member)
    return pointer[1] if pointer else re.search(r"(\w+)(?:\[[^\]]*\])*$", member)[1]


def facts(headers, compiler):
    """The lines of the list, as the compiler sees the headers."""
    constants, structs, functions = parts(declarations(headers))
    program = ["#include <stddef.h>", "#include <stdio.h>", "#include <thalia/c.h>", "int main(void) {"]
    program += [f'  printf("constant {name} %lld\\n", (long long){name});' for name in constants]
    for struct, members in structs.items():
        program.append(f'  printf("struct {struct} of %zu bytes\\n", sizeof({struct}));')
        for member in members:
            place = f"offsetof({struct}, {name_of(member)}), sizeof((({struct}*)0)->{name_of(member)})"
            program.append(f'  printf("member {struct} at %zu of %zu bytes: {member}\\n", {place});')
    program += ["  return 0;", "}"]
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder) / "abi.c", Path(folder) / "abi"
        source.write_text("\n".join(program), encoding="utf-8")
        subprocess.run([*compiler, "-std=c11", f"-I{headers}", source, "-o", built], check=True)
        printed = subprocess.run([built], check=True, capture_output=True, encoding="utf-8").stdout
    return printed.splitlines() + [f"function {function}" for function in functions]


def exported(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, encoding="utf-8")
    return {line.split()[2].partition("@")[0] for line in listed.stdout.splitlines()}


def soname(library):
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, encoding="utf-8").stdout
    return re.search(r"\(SONAME\).*\[(.*)\]", dynamic)[1]


def without_growth(line):
    return re.sub(r"^(struct \w+) of \d+ bytes$", r"\1", line)


def broken_promises(before, after):
    """The lines of `before` that do not hold in `after`, unless the soname is another."""
    if before[0] != after[0]:
        return []
    begins_with_size = {
        line.split()[1] for line in after if re.match(r"member \w+ at 0 of \d+ bytes: size_t size$", line)
    }
    there = set(after)
    grown = {without_growth(line): int(line.split()[3]) for line in after if line.startswith("struct ")}
    broken = []
    for line in before:
        if line in there:
            continue
        words = line.split()
        may_grow = words[0] == "struct" and words[1] in begins_with_size
        if not (may_grow and grown.get(without_growth(line), 0) >= int(words[3])):
            broken.append(line)
    return broken


def check_of_the_rule():
    """The rule itself: what it lets pass, and what it does not."""
    old = [
        "soname a.so.0",
        "constant A 1",
        "struct s of 8 bytes",
        "member s at 0 of 8 bytes: size_t size",
        "struct t of 8 bytes",
    ]
    grown = [*old[:2], "struct s of 16 bytes", old[3], "member s at 8 of 8 bytes: size_t more", old[4], "constant B 2"]
    assert broken_promises(old, grown) == []
    assert broken_promises(grown, old) == [
        "struct s of 16 bytes",
        "member s at 8 of 8 bytes: size_t more",
        "constant B 2",
    ]
    assert broken_promises(old, [*old[:4], "struct t of 16 bytes"]) == ["struct t of 8 bytes"]
    assert broken_promises(old, [old[0], "constant A 2", *old[2:]]) == ["constant A 1"]
    assert broken_promises(old, ["soname a.so.1"]) == []


def main(arguments):
    accept = arguments[0] == "--accept"
    library, version, headers, *compiler = arguments[accept:]
    check_of_the_rule()
    name = soname(library)
    wanted = f"libthalia.so.{version.partition('.')[0]}"
    if name != wanted:
        sys.exit(f"the soname is {name}, and that of version {version} is {wanted}")
    lines = [f"soname {name}", *facts(Path(headers), compiler)]
    functions = {re.search(r"(\w+)\(", line)[1] for line in lines if line.startswith("function ")}
    symbols = exported(library)
    in_c = {symbol for symbol in symbols if symbol.startswith("thalia_")}
    if in_c != functions:
        sys.exit(
            f"of the C interface, the library and its headers do not agree on: {', '.join(sorted(in_c ^ functions))}"
        )
    foreign = {symbol for symbol in symbols - in_c if not EXPORTED_CPP.match(symbol)}
    if foreign:
        sys.exit(f"the library exports what is not of its namespace: {', '.join(sorted(foreign)[:10])}")
    before = LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else lines
    broken = broken_promises(before, lines)
    if broken:
        sys.exit("programs that are compiled would break; a change like this takes a new soname:\n" + "\n".join(broken))
    if accept:
        LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif before != lines:
        new = [line for line in lines if line not in before]
        sys.exit("not in tests/c/abi.txt yet; please run this test with --accept:\n" + "\n".join(new or ["the order"]))
    print(f"{len(functions)} functions, {len(lines)} lines, {len(symbols)} exported symbols")


if __name__ == "__main__":
    main(sys.argv[1:])
