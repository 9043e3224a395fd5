#include "formats/source/file_report.h"

#include <string_view>
#include <utility>

#include "format/payload.h"

namespace thalia::formats {
namespace {

Finding finding_of(const Error& error) {
  const ErrorContext& context = error.context();
  std::string message = context.field;
  const auto append = [&](std::string_view separator, std::string_view part) {
    if (!part.empty()) message.append(message.empty() ? "" : separator).append(part);
  };
  append(": ", error.message());
  append(": ", error.details());
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

}  // namespace

void FileReport::add(Finding finding) {
  if (report_.findings.size() < most_) {
    report_.findings.push_back(std::move(finding));
    return;
  }
  ++report_.suppressed;
  if (finding.severity == Severity::error) ++report_.suppressed_errors;
}

Finding finding_of_file(Severity severity, ErrorCode code, std::string message) {
  Finding finding;
  finding.severity = severity;
  finding.code = code;
  finding.section = "file";
  finding.message = std::move(message);
  return finding;
}

void FileReport::add(const Error& error) {
  add(finding_of(error));
}

void FileReport::add(const VerifyReport& part) {
  for (const Finding& finding : part.findings) add(finding);
  report_.suppressed += part.suppressed;
  report_.suppressed_errors += part.suppressed_errors;
  report_.bytes_checked += part.bytes_checked;
  report_.regions += part.regions;
  report_.tensors += part.tensors;
  report_.tensors_compared += part.tensors_compared;
}

VerifyReport FileReport::finish() && {
  report_.seconds = watch_.seconds();
  return std::move(report_);
}

void check_tensors(const OpenedFile& source, const VerifyOptions& options, FileReport& report) {
  const std::vector<AnyTensor>& tensors = source.facts().tensors;
  VerifyReport& counts = report.counts();
  counts.tensors = static_cast<std::uint32_t>(tensors.size());
  if (options.quick) return;
  std::uint64_t total = 0;
  for (const AnyTensor& tensor : tensors) total += tensor.stored_bytes.value_or(0);
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const AnyTensor& tensor = tensors[i];
    report.find([&] { source.check(i); });
    if (!tensor.checksum.empty()) {
      ++counts.tensors_compared;
      counts.bytes_checked +=
          tensor.stored_bytes.value_or(format::payload_length(tensor.layout).value_or(0));
    }
    done += tensor.stored_bytes.value_or(0);
    if (options.work.progress) options.work.progress(done, total);
  }
}

}  // namespace thalia::formats
