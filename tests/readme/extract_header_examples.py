"""Writes the examples at the top of the public headers to one source file, each in a function.

Code is what stands three spaces in from the comment's marks. The names that an example uses
without declaring them are declared before it: NAMES.
"""

import re
import sys
from pathlib import Path

INDENT = "//   "
WEIGHTS = "const std::vector<float> weights(n * n);"
READER = 'const auto reader = thalia::Reader::open("run.thalia");'
BRAIN = "thalia::BrainState brain;"
NAMES = {
    "append.h": WEIGHTS,
    "async_save.h": "const auto declared = [](const char* path) { return thalia::Writer(path); };",
    "brain_checkpoint.h": BRAIN,
    "brain_region.h": "const thalia::ByteSpan bytes;",
    "byte_transforms.h": "const std::vector<std::byte> weights(64);",
    "brain_state.h": "const thalia::Tensor weights, delays;",
    "capacity.h": BRAIN,
    "checkpoint_compressor.h": "const thalia::Checkpoint checkpoint;",
    "checkpoint_metadata.h": BRAIN,
    "delta.h": "const thalia::StateSource state;",
    "diff.h": 'const char *a = "a.thalia", *b = "b.thalia";',
    "grow_file.h": 'const char* path = "";',
    "load_into.h": "const int larger_config = 0; const auto build_brain = [](int) { return thalia::BrainState(); };",
    "mckp.h": "const thalia::Tensor tensor;",
    "output_file.h": "const std::string text;",
    "precision.h": "using thalia::DType, thalia::Role; const std::uint64_t element_count = 1;",
    "prune.h": BRAIN + " const bool accuracy_fell = true;",
    "store.h": BRAIN + " const std::uint64_t now = 0, seed = 0, step = 1; const double loss = 0;",
    "store/pool.h": "const std::uint64_t step = 1, seed = 0, game = 0;",
    "store/transition.h": "const std::uint64_t seed = 0;",
    "store/retention.h": "const std::vector<thalia::CheckpointEntry> entries; const std::uint64_t now = 0; "
    "const auto print = [](const auto&...) {};",
    "store/run.h": "const auto print = [](const auto&...) {};",
    "store/writer.h": BRAIN + " const std::uint64_t step = 1; const double loss = 0;",
    "storage.h": "const thalia::ByteSpan bytes;",
    "stream.h": "const auto upload = [](std::string_view, thalia::ByteSpan) {};",
    "tensor_value.h": READER,
    "writer.h": WEIGHTS,
}
HEAD = """#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/brain.h"
#include "thalia/c.h"
#include "thalia/formats.h"
#include "thalia/store.h"
#include "thalia/thalia.h"

namespace {
constexpr std::uint32_t n = 4, m = 3;
[[maybe_unused]] void report(std::string_view, double = 0) {}
}  // namespace
"""


def example(text):
    """The first line's number and the lines of the example of one header, if it has one."""
    code = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("//"):
            break
        if line.startswith(INDENT):
            code.append((number, line[len(INDENT) :]))
    return code if any("thalia::" in line or "thalia_" in line for _, line in code) else []


def main():
    *headers, target = map(Path, sys.argv[1:])
    parts = [HEAD]
    for header in headers:
        code = example(header.read_text(encoding="utf-8"))
        if not code:
            continue
        name = header.as_posix().rpartition("thalia/")[2]
        function = re.sub(r"\W", "_", f"example_{name}")
        parts.append(f"void {function}();\nvoid {function}() {{")
        parts.append(NAMES.get(name, ""))
        for number, line in code:
            parts.append(f'#line {number} "{header.as_posix()}"\n{line}')
        parts.append("}")
    target.write_text("\n".join(parts) + "\n", encoding="utf-8")


main()
