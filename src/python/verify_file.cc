// Formats but .thalia tell of damage by exceptions, of which the first is the finding.
#include "python/verify_file.h"

#include <string>
#include <utility>

#include "python/file_facts.h"
#include "thalia/brain_region.h"
#include "thalia/error.h"
#include "thalia/mckp.h"
#include "thalia/mst.h"
#include "thalia/safetensors.h"
#include "thalia/v01.h"

namespace thalia::python {
namespace {

using Path = std::filesystem::path;

Finding finding_of(const Error& error) {
  const ErrorContext& context = error.context();
  std::string message = context.field;
  for (const std::string& part : {error.message(), error.details()}) {
    if (!part.empty()) message.append(message.empty() ? "" : ": ").append(part);
  }
  return {.severity = Severity::error,
          .code = error.code(),
          .section = context.section.empty() ? "file" : context.section,
          .field = context.field,
          .region = context.region,
          .tensor = context.tensor,
          .offset = context.offset.value_or(0),
          .message = std::move(message)};
}

void check_safetensors(const Path& path, const ChainOptions& chain, VerifyReport& report) {
  report.tensors =
      static_cast<std::uint32_t>(SafetensorsFile::open(path, chain.read).tensors().size());
}

void check_mst(const Path& path, const ChainOptions& chain, bool quick, VerifyReport& report) {
  const MstFile file = MstFile::open(path, chain.read);
  report.tensors = static_cast<std::uint32_t>(file.tensors().size());
  if (quick) return;
  for (const MstTensor& tensor : file.tensors()) static_cast<void>(file.read(tensor.name));
  report.bytes_checked = file.file_bytes();
}

void check_mckp(const Path& path, const ChainOptions& chain, bool quick, VerifyReport& report) {
  const MckpReadOptions options{
      .input = chain.read.input, .search = chain.search, .work = chain.read.work};
  const MckpFile file = MckpFile::open(path, options);
  report.tensors = static_cast<std::uint32_t>(file.tensors().size());
  if (quick) return;
  file.verify();
  // The content hash is that of the restored tensors, so a delta needs the files before it.
  MckpChain::open(path, options).verify_content();
  report.bytes_checked = file.file_bytes();
}

void check_original(const Path& path, const ChainOptions& chain, VerifyReport& report) {
  const V01File file = read_v01(path, chain.read);
  report.regions = static_cast<std::uint32_t>(file.document.entries.size());
  report.bytes_checked = file.file_bytes;
  for (const V01Entry& entry : file.document.entries)
    for_each_tensor(entry.state, [&](const std::string&, const Tensor&) { ++report.tensors; });
  for (const std::string& warning : file.warnings) {
    report.findings.push_back(
        {.severity = Severity::warning, .section = "file", .message = warning});
  }
}

void check(const Path& path, FileFormat format, bool quick, const ChainOptions& chain,
           VerifyReport& report) {
  if (format == FileFormat::safetensors) return check_safetensors(path, chain, report);
  if (format == FileFormat::mst) return check_mst(path, chain, quick, report);
  if (format == FileFormat::mckp) return check_mckp(path, chain, quick, report);
  check_original(path, chain, report);
}

}  // namespace

VerifyReport verify_file(const std::filesystem::path& path, const VerifyOptions& options,
                         const ChainOptions& chain) {
  const FileFormat format = known_format(path);
  if (format == FileFormat::thalia) return verify_chain(path, options, chain.search);
  VerifyReport report;
  try {
    check(path, format, options.quick, chain, report);
  } catch (const FormatError& error) {
    if (error.code() == ErrorCode::limit_exceeded) throw;
    report.findings.push_back(finding_of(error));
  } catch (const IntegrityError& error) {
    report.findings.push_back(finding_of(error));
  }
  return report;
}

}  // namespace thalia::python
