#include "cli/print/finding_place.h"

#include <fmt/format.h>

#include "cli/terminal/escape.h"

namespace thalia::cli {

std::string finding_place(const Finding& finding) {
  std::string text = finding.section;
  if (finding.offset > 0 || finding.length > 0)
    text += fmt::format(" at offset {}", finding.offset);
  if (finding.length > 0) text += fmt::format(" ({} bytes)", finding.length);
  if (!finding.region.empty()) text += fmt::format(", region '{}'", escape_name(finding.region));
  if (!finding.tensor.empty()) text += fmt::format(", tensor '{}'", escape_name(finding.tensor));
  return text;
}

}  // namespace thalia::cli
