#include "cli/print/error_finding.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "cli/terminal/escape.h"

namespace thalia::cli {

Finding finding_of(const Error& error) {
  const ErrorContext& context = error.context();
  std::string message = context.field;
  const auto add = [&](std::string_view separator, std::string_view part) {
    if (!part.empty()) message.append(message.empty() ? "" : separator).append(part);
  };
  add(": ", error.message());
  add(": ", error.details());
  return {.severity = Severity::error,
          .code = error.code(),
          .section = context.section.empty() ? "file" : context.section,
          .field = context.field,
          .region = context.region,
          .tensor = context.tensor,
          .offset = context.offset.value_or(0),
          .length = 0,
          .message = std::move(message)};
}

std::string_view severity_name(Severity severity) {
  return severity == Severity::error ? "error" : "warning";
}

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
