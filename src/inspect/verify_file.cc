// Limits and cancelling are not findings, since they say nothing about the file, and are thrown on.
#include "inspect/verify_file.h"

#include "inspect/finding.h"
#include "inspect/flat_file.h"
#include "inspect/packed_file.h"
#include "thalia/brain_region.h"
#include "thalia/error.h"
#include "thalia/v01.h"

namespace thalia::inspect {
namespace {

// What can be wrong with a file of version 0.1, reading it finds: all is read, the checksum first.
VerifyReport verify_original(const std::string& path, const ReadOptions& read) {
  VerifyReport report;
  try {
    const V01File file = read_v01(path, read);
    report.regions = static_cast<std::uint32_t>(file.document.entries.size());
    report.bytes_checked = file.file_bytes;
    for (const V01Entry& entry : file.document.entries)
      for_each_tensor(entry.state, [&](const std::string&, const Tensor&) { ++report.tensors; });
    report.tensors_compared = report.tensors;  // reading it compared the checksum of the whole file
    for (const std::string& warning : file.warnings) {
      report.findings.push_back({.severity = Severity::warning,
                                 .code = ErrorCode::bad_value,
                                 .section = "file",
                                 .field = {},
                                 .region = {},
                                 .tensor = {},
                                 .offset = 0,
                                 .length = 0,
                                 .message = warning});
    }
  } catch (const UnsupportedError&) {
    // Neither this nor the next two say that the file is wrong.
    throw;
  } catch (const IoError&) {
    throw;
  } catch (const CancelledError&) {
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::limit_exceeded) throw;
    report.findings.push_back(finding_of(error));
  }
  return report;
}

}  // namespace

VerifyReport verify_file(const std::string& path, FileFormat format, const ChainOptions& chain,
                         bool resolve, const VerifyOptions& options) {
  if (format == FileFormat::thalia_0_1 && !is_v01_delta(path, chain.read))
    return verify_original(path, chain.read);
  if (is_packed(format)) return verify_packed(path, format, chain, options.quick);
  if (format != FileFormat::thalia && format != FileFormat::thalia_0_1)
    return verify_flat(path, format, chain, options);
  return resolve ? verify_chain(path, options, chain.search, chain.bases) : verify(path, options);
}

}  // namespace thalia::inspect
