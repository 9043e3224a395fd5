#include "cli/print/verify_text.h"

#include <fmt/format.h>

#include "cli/print/print.h"
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

std::string what_was_checked(const VerifyReport& report, bool quick, bool with_time) {
  if (report.structure_only()) {
    if (quick || report.tensors == 0) return "structure only";
    return "structure only: the file has no checksums of its tensors";
  }
  std::string text = human_bytes(report.bytes_checked) + " checked";
  if (with_time) text += fmt::format(" in {:.2f} s", report.seconds);
  if (report.tensors_compared < report.tensors) {
    text += fmt::format("; structure only of {} without a checksum",
                        counted(report.tensors - report.tensors_compared, "tensor", "tensors"));
  }
  return text;
}

}  // namespace thalia::cli
