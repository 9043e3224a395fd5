// Several checks may come upon one fault, so a finding that says the same of the same place is kept
// once. Memory has an upper limit, also for a file in which everything is wrong: beyond `most`
// findings are only counted, and beyond kRemembered of these a repeated one may be counted again.
// Messages are made printable here, as they quote names that the author of the file chose.
#include "container/verify/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "thalia/text.h"

namespace thalia {

std::string_view severity_name(Severity severity) noexcept {
  return severity == Severity::error ? "error" : "warning";
}

bool VerifyReport::ok() const noexcept {
  return suppressed_errors == 0 &&
         std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.severity == Severity::error; });
}

namespace container {
namespace {

constexpr std::uint64_t kRemembered = 1024;

}  // namespace

Finding finding_of_file(Severity severity, ErrorCode code, std::string message) {
  Finding finding;
  finding.severity = severity;
  finding.code = code;
  finding.section = "file";
  finding.message = std::move(message);
  return finding;
}

void Findings::add(Finding finding) {
  finding.message = printable(finding.message, std::string_view::npos);
  std::string said = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", finding.offset, finding.section,
                                 finding.field, finding.region, finding.tensor, finding.message);
  const std::lock_guard lock(mutex_);
  if (said_.contains(said)) return;
  const bool is_kept = report_.findings.size() < most_;
  if (is_kept || report_.suppressed < kRemembered) said_.insert(std::move(said));
  if (is_kept) {
    report_.findings.push_back(std::move(finding));
  } else {
    ++report_.suppressed;
    if (finding.severity == Severity::error) ++report_.suppressed_errors;
  }
}

void Findings::add(const Error& error, std::string_view region, std::string_view tensor) {
  const ErrorContext& context = error.context();
  std::string message = error.message();
  if (!context.field.empty()) message = context.field + (message.empty() ? "" : ": " + message);
  const std::string details = error.details();
  if (!details.empty()) message += (message.empty() ? "" : ": ") + details;
  add({.code = error.code(),
       .section = context.section.empty() ? "file" : context.section,
       .field = context.field,
       .region = context.region.empty() ? printable(region) : context.region,
       .tensor = context.tensor.empty() ? printable(tensor) : context.tensor,
       .offset = context.offset.value_or(0),
       .message = std::move(message)});
}

void Findings::add_report(const VerifyReport& part, const std::string& in_front) {
  for (Finding finding : part.findings) {
    finding.message = in_front + finding.message;
    add(std::move(finding));
  }
  report_.suppressed += part.suppressed;
  report_.suppressed_errors += part.suppressed_errors;
  report_.bytes_checked += part.bytes_checked;
  report_.regions += part.regions;
  report_.tensors += part.tensors;
  report_.tensors_compared += part.tensors_compared;
}

void Findings::sort() {
  std::stable_sort(report_.findings.begin(), report_.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.offset < b.offset; });
}

VerifyReport Findings::finish() && {
  report_.seconds = watch_.seconds();
  return std::move(report_);
}

}  // namespace container
}  // namespace thalia
