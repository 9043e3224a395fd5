"""Writes the examples in the comments of the public headers to one source file, each in a function.

Code is what stands three spaces in from the comment's marks. The names that an example uses
without declaring them are declared before it: NAMES.
"""

import re
import sys
from pathlib import Path

INDENT, INDENT_DECLARED = "//   ", "///   "
WEIGHTS = "const std::vector<float> weights(n * n);"
READER = 'const auto reader = thalia::Reader::open("run.thalia");'
BRAIN = "thalia::BrainState brain;"
NAMES = {
    "files.h": "const std::string text;",
    "types.h": "const std::vector<std::byte> weights(64);",
    "append.h": WEIGHTS,
    "async_save.h": "const auto declared = [](const char* path) { return thalia::Writer(path); };",
    "state/checkpoint.h": BRAIN,
    "state/brain.h": "const thalia::ByteSpan bytes; const thalia::Tensor weights, delays;",
    "formats/compressor.h": "const thalia::Checkpoint checkpoint;",
    "state/metadata.h": BRAIN,
    "state/delta.h": "const thalia::StateSource state;",
    "state/diff.h": 'const char *a = "a.thalia", *b = "b.thalia";',
    "formats/param_source.h": "struct Packed {}; const auto pack = [](const thalia::Tensor&) { return Packed(); }; "
    'const auto source = thalia::stream_params(thalia::open_any("model.safetensors")); const thalia::ParamInfo info; '
    "const thalia::ParamResolver resolver;",
    "formats/mckp.h": "const thalia::Tensor tensor;",
    "state/precision.h": "using thalia::DType, thalia::Role; const std::uint64_t element_count = 1;",
    "state/growth.h": BRAIN
    + ' const bool accuracy_fell = true; const char* path = "";'
    + " "
    + ("const int larger_config = 0; const auto build_brain = [](int) { return thalia::BrainState(); };"),
    "store.h": BRAIN + " const std::uint64_t now = 0, seed = 0, step = 1; const double loss = 0;",
    "store/follow.h": "const auto serve = [](const thalia::Tensor&, std::uint64_t) {}; std::mutex server; "
    "std::vector<std::byte> weights;",
    "store/publish.h": BRAIN + " const std::uint64_t step = 1;",
    "store/pool.h": "const std::uint64_t step = 1, seed = 0, game = 0;",
    "store/transition.h": "const std::uint64_t seed = 0;",
    "store/retention.h": "const std::vector<thalia::CheckpointEntry> entries; const std::uint64_t now = 0; "
    "const auto print = [](const auto&...) {};",
    "store/run.h": "const auto print = [](const auto&...) {};",
    "store/writer.h": BRAIN + " const std::uint64_t step = 1; const double loss = 0;",
    "storage.h": "const thalia::ByteSpan bytes;",
    "stream.h": "const auto upload = [](std::string_view, thalia::ByteSpan) {};",
    "state/tensor_value.h": READER,
    "writer.h": WEIGHTS,
}
HEAD = """#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/state.h"
#include "thalia/c.h"
#include "thalia/formats.h"
#include "thalia/store.h"
#include "thalia/thalia.h"

namespace {
constexpr std::uint32_t n = 4, m = 3;
[[maybe_unused]] void report(std::string_view, double = 0) {}
}  // namespace
"""


def examples(text):
    """The numbered lines of each example of a header: of its head, of the heads of its sections, of a declaration."""
    found, code = [], []
    declared = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith(INDENT):
            code.append((number, line[len(INDENT) :]))
        elif not re.match(r"//(?!/)", line):
            if any("thalia::" in part or "thalia_" in part for _, part in code):
                found.append(code)
            code = []
        if line.startswith(INDENT_DECLARED):
            declared.append((number, line[len(INDENT_DECLARED) :]))
        elif not line.startswith("///") and declared:
            found.append(declared)
            declared = []
    return found


def main():
    *headers, target = map(Path, sys.argv[1:])
    parts = [HEAD]
    for header in headers:
        name = header.as_posix().rpartition("thalia/")[2]
        for i, code in enumerate(examples(header.read_text(encoding="utf-8"))):
            function = re.sub(r"\W", "_", f"example_{i}_{name}")
            # What a header's other examples need is here too: an example may declare the same name.
            parts.append(f"void {function}();\nvoid {function}() {{")
            parts.append(NAMES.get(name, ""))
            parts.append("{")
            for number, line in code:
                parts.append(f'#line {number} "{header.as_posix()}"\n{line}')
            parts.append("}\n}")
    target.write_text("\n".join(parts) + "\n", encoding="utf-8")


main()
