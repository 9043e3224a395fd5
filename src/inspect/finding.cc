#include "inspect/finding.h"

#include <string>
#include <utility>

namespace thalia::inspect {

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

Finding finding_of_file(Severity severity, ErrorCode code, std::string message) {
  return {.severity = severity,
          .code = code,
          .section = "file",
          .field = {},
          .region = {},
          .tensor = {},
          .offset = 0,
          .length = 0,
          .message = std::move(message)};
}

void add_finding(VerifyReport& report, Finding finding, std::uint64_t most) {
  if (report.findings.size() < most) {
    report.findings.push_back(std::move(finding));
  } else {
    ++report.suppressed;
    if (finding.severity == Severity::error) ++report.suppressed_errors;
  }
}

std::string_view severity_name(Severity severity) {
  return severity == Severity::error ? "error" : "warning";
}

}  // namespace thalia::inspect
