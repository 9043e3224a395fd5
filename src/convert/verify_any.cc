// One table says how a file of each format is verified. Most are opened and each tensor is looked
// at; a format that can tell more has a function of its own.
#include <optional>
#include <utility>

#include "convert/formats.h"
#include "formats/source/file_report.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/safetensors.h"

namespace thalia {

VerifyReport verify_any(const std::filesystem::path& named, const VerifyOptions& verify,
                        const OpenOptions& options, std::optional<FileFormat> known, bool resolve) {
  const std::filesystem::path file = find_model(named);
  const FileFormat format = known ? *known : input_format(file, options.chain.read.input.access);
  const formats::FormatRow& row = formats::format_row(format);
  formats::FileReport report(verify);
  if (row.verify != nullptr) {
    report.add(row.verify(file, options, verify, resolve));
  } else {
    report.find([&] { formats::check_tensors(*row.open(file, options), verify, report); });
  }
  // What the file has may be as it was written: without the rest it is no model.
  if (report.ok()) {
    if (const auto lack = lacks_of_file(file, format, options)) {
      report.add(
          formats::finding_of_file(Severity::error, ErrorCode::truncated, "it lacks " + *lack));
    }
  }
  return std::move(report).finish();
}

}  // namespace thalia
