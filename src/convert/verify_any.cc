// One table says how a file of each format is verified. Most are opened and each tensor is looked
// at; a format that can tell more has a function of its own.
#include <optional>
#include <utility>

#include "convert/formats.h"
#include "formats/source/check_tensors.h"
#include "formats/source/part_name.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/safetensors.h"

namespace thalia {

VerifyReport verify_any(const std::filesystem::path& named, const VerifyOptions& verify,
                        const OpenOptions& options, std::optional<FileFormat> known, bool resolve,
                        const std::function<void(FileFormat)>& on_format) {
  const io::InputFile input(find_model(named));
  // The file is opened once, in the safer of the two ways that are asked for.
  const Access access =
      verify.input.access == Access::copied ? Access::copied : options.chain.read.input.access;
  const FileFormat format = known ? *known : formats::format_of(input, access);
  if (on_format) on_format(format);
  const formats::FormatRow& row = formats::format_row(format);
  container::Findings findings(verify.max_findings);
  std::optional<formats::ModelPart> part;
  if (row.verify != nullptr) {
    findings.add_report(row.verify(input, options, verify, resolve));
  } else {
    findings.find([&] {
      const auto opened = row.open(input, options);
      part = opened->part();
      formats::check_tensors(*opened, verify, findings);
    });
  }
  // What the file has may be as it was written: without the rest it is no model.
  if (findings.ok()) {
    if (const auto lack = formats::lacking_parts(input.path(), part)) {
      findings.add(
          container::finding_of_file(Severity::error, ErrorCode::truncated, "it lacks " + *lack));
    }
  }
  return std::move(findings).finish();
}

}  // namespace thalia
