// Limits and cancelling are not findings, since they say nothing about the file, and are thrown on.
#include "inspect/verify_file.h"

#include <fmt/format.h>

#include <utility>

#include "base/stopwatch.h"
#include "inspect/describe_file.h"
#include "inspect/finding.h"
#include "inspect/flat_file.h"
#include "inspect/packed_file.h"
#include "thalia/brain_region.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/model_index.h"
#include "thalia/paths.h"
#include "thalia/text.h"
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
    for (const std::string& warning : file.warnings)
      report.findings.push_back(finding_of_file(Severity::warning, ErrorCode::bad_value, warning));
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

// Each file by itself, as one that is named, and then what they are together.
VerifyReport verify_shards(const std::string& path, const ChainOptions& chain,
                           const VerifyOptions& options) {
  const Stopwatch watch;
  VerifyReport report;
  const auto add = [&](Finding finding) {
    add_finding(report, std::move(finding), options.max_findings);
  };
  const auto find = [&](const auto& work) {
    try {
      work();
    } catch (const UnsupportedError&) {
      throw;
    } catch (const CancelledError&) {
      throw;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::limit_exceeded) throw;
      add(finding_of(error));
    }
  };
  find([&] {
    const ModelIndex index = read_model_index(path, chain.read.input.limits);
    for (const std::string& name : index.files) {
      const std::filesystem::path file = folder_of(path) / name;
      find([&] {
        VerifyReport one = verify_chain(file, options, chain.search, chain.bases);
        for (Finding& finding : one.findings) {
          finding.message = fmt::format("{}: {}", printable(name), finding.message);
          add(std::move(finding));
        }
        report.suppressed += one.suppressed;
        report.suppressed_errors += one.suppressed_errors;
        report.bytes_checked += one.bytes_checked;
        report.regions += one.regions;
        report.tensors += one.tensors;
        report.tensors_compared += one.tensors_compared;
      });
    }
    // Opening would fail with the first of these.
    if (report.ok()) open_any(path, open_options(chain), FileFormat::thalia_shards);
  });
  report.seconds = watch.seconds();
  return report;
}

VerifyReport verify_format(const std::string& path, FileFormat format, const ChainOptions& chain,
                           bool resolve, const VerifyOptions& options) {
  if (format == FileFormat::thalia_0_1 && !is_v01_delta(path, chain.read))
    return verify_original(path, chain.read);
  if (is_packed(format)) return verify_packed(path, format, chain, options.quick);
  if (format == FileFormat::thalia_shards) return verify_shards(path, chain, options);
  if (format != FileFormat::thalia && format != FileFormat::thalia_0_1)
    return verify_flat(path, format, chain, options);
  return resolve ? verify_chain(path, options, chain.search, chain.bases) : verify(path, options);
}

}  // namespace

VerifyReport verify_file(const std::string& named, FileFormat format, const ChainOptions& chain,
                         bool resolve, const VerifyOptions& options) {
  const std::string path = find_model(named).string();
  VerifyReport report = verify_format(path, format, chain, resolve, options);
  // What the file has may be as it was written: without the rest it is no model.
  if (!report.ok()) return report;
  if (const auto lack = lack_of_file(path, format, chain))
    report.findings.push_back(finding_of_file(Severity::error, ErrorCode::truncated, *lack));
  return report;
}

}  // namespace thalia::inspect
