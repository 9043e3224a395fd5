// One table says how a file of each format is verified. Most are opened and each tensor is looked
// at; a format that can tell more has a function of its own.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "interop/convert/formats.h"
#include "interop/shared/file_report.h"
#include "thalia/brain_region.h"
#include "thalia/delta.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/model_index.h"
#include "thalia/paths.h"
#include "thalia/v01.h"

namespace thalia {
namespace {

using std::filesystem::path;

// Reading it finds what can be wrong with a file of version 0.1: all is read, the checksum first.
VerifyReport verify_original(const path& file, const ReadOptions& read,
                             const VerifyOptions& verify) {
  interop::FileReport report(verify);
  report.find([&] {
    const V01File original = read_v01(file, read);
    VerifyReport& counts = report.counts();
    counts.regions = static_cast<std::uint32_t>(original.document.entries.size());
    counts.bytes_checked = original.file_bytes;
    for (const V01Entry& entry : original.document.entries)
      for_each_tensor(entry.state, [&](const std::string&, const Tensor&) { ++counts.tensors; });
    counts.tensors_compared = counts.tensors;  // the checksum is that of the whole file
    for (const std::string& warning : original.warnings)
      report.add(interop::finding_of_file(Severity::warning, ErrorCode::bad_value, warning));
  });
  return std::move(report).finish();
}

// Each file by itself, as one that is named, and then what they are together.
VerifyReport verify_shards(const path& index, const OpenOptions& options,
                           const VerifyOptions& verify) {
  interop::FileReport report(verify);
  report.find_of_named([&] {
    for (const std::string& name : read_model_index(index, options.chain.read.input.limits).files) {
      report.find_of_named([&] {
        VerifyReport one = verify_chain(folder_of(index) / name, verify, options.chain.search,
                                        options.chain.bases);
        for (Finding& finding : one.findings)
          finding.message = fmt::format("{}: {}", printable(name), finding.message);
        report.add(one);
      });
    }
    // Opening would fail with the first of these.
    if (report.ok()) open_any(index, options, FileFormat::thalia_shards);
  });
  return std::move(report).finish();
}

VerifyReport verify_format(const path& file, FileFormat format, const OpenOptions& options,
                           const VerifyOptions& verify, bool resolve) {
  if (format == FileFormat::thalia_0_1 && !is_v01_delta(file, options.chain.read))
    return verify_original(file, options.chain.read, verify);
  if (format == FileFormat::thalia || format == FileFormat::thalia_0_1) {
    return resolve ? verify_chain(file, verify, options.chain.search, options.chain.bases)
                   : thalia::verify(file, verify);
  }
  if (format == FileFormat::thalia_shards) return verify_shards(file, options, verify);
  const interop::FormatRow& row = interop::format_row(format);
  if (row.verify != nullptr) return row.verify(file, options, verify);
  interop::FileReport report(verify);
  report.find([&] { interop::check_tensors(*row.open(file, options), verify, report); });
  return std::move(report).finish();
}

}  // namespace

VerifyReport verify_any(const path& named, const VerifyOptions& verify, const OpenOptions& options,
                        std::optional<FileFormat> known, bool resolve) {
  const path file = find_model(named);
  const FileFormat format = known ? *known : input_format(file, options.chain.read.input.access);
  VerifyReport report = verify_format(file, format, options, verify, resolve);
  // What the file has may be as it was written: without the rest it is no model.
  if (!report.ok()) return report;
  if (const auto lack = lacks_of_file(file, format, options)) {
    report.findings.push_back(
        interop::finding_of_file(Severity::error, ErrorCode::truncated, "it lacks " + *lack));
  }
  return report;
}

}  // namespace thalia
