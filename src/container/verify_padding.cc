#include <fmt/format.h>

#include <algorithm>

#include "container/verify_structure.h"

namespace thalia::container {

void verify_padding(const detail::OpenFile& file, const Structure& structure, bool read_padding,
                    Findings& findings) {
  std::uint64_t at = 0;
  const auto check_gap = [&](std::uint64_t end) {
    if (!read_padding || file.header().generation > 1) return;
    bool found = false;
    findings.check([&] {
      file.pass_over(at, end - at, [&](std::uint64_t offset, ByteSpan gap) {
        const auto bad =
            std::find_if(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{0}; });
        if (found || bad == gap.end()) return;
        found = true;
        findings.add({.section = "padding",
                      .offset = offset + static_cast<std::uint64_t>(bad - gap.begin()),
                      .length = 1,
                      .message = fmt::format("padding in [{}, {}) is not zero", at, end)});
      });
    });
  };
  for (const Covered& covered : structure.covered) {
    if (covered.extent.offset < at) {
      findings.add({.section = covered.section,
                    .offset = covered.extent.offset,
                    .length = at - covered.extent.offset,
                    .message = fmt::format("[{}, +{}) overlaps what ends at {}",
                                           covered.extent.offset, covered.extent.length, at)});
    } else if (covered.extent.offset > at) {
      check_gap(covered.extent.offset);
    }
    at = std::max(at, covered.extent.offset + covered.extent.length);
  }
}

}  // namespace thalia::container
