// One table says how a file of each format is verified. Most are opened and each tensor is looked
// at; a format that can tell more has a function of its own.
#include <optional>
#include <utility>

#include "convert/formats.h"
#include "formats/source/check_tensors.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/safetensors.h"

namespace thalia {

VerifyReport verify_any(const std::filesystem::path& named, const VerifyOptions& verify,
                        const OpenOptions& options, std::optional<FileFormat> known, bool resolve) {
  const std::filesystem::path file = find_model(named);
  const FileFormat format = known ? *known : input_format(file, options.chain.read.input.access);
  const formats::FormatRow& row = formats::format_row(format);
  container::Findings findings(verify.max_findings);
  if (row.verify != nullptr) {
    findings.add_report(row.verify(file, options, verify, resolve));
  } else {
    findings.find([&] { formats::check_tensors(*row.open(file, options), verify, findings); });
  }
  // What the file has may be as it was written: without the rest it is no model.
  if (findings.ok()) {
    if (const auto lack = lacks_of_file(file, format, options)) {
      findings.add(
          container::finding_of_file(Severity::error, ErrorCode::truncated, "it lacks " + *lack));
    }
  }
  return std::move(findings).finish();
}

}  // namespace thalia
