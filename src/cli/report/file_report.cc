// In memory are the facts of each tensor and some histograms, whatever the size of the file.
#include "cli/report/file_report.h"

#include <cstdint>
#include <utility>

#include "cli/print/progress.h"
#include "cli/tensor/largest.h"
#include "inspect/describe_file.h"
#include "inspect/file_tensors.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/file_facts.h"

namespace thalia::cli {
namespace {

// Calls read(), and returns what is wrong with the file where that shows it.
template <typename Read>
std::string damage_of(const Read& read) {
  try {
    read();
    return {};
  } catch (const FormatError& error) {
    if (error.code() == ErrorCode::limit_exceeded) throw;
    return error.what();
  } catch (const IntegrityError& error) {
    return error.what();
  }
}

// One damaged tensor is no reason not to report the others.
ChainOptions tensor_by_tensor(const Session& session) {
  auto options = session.options<ChainOptions>();
  options.read.verification = Verification::by_tensor;
  return options;
}

inspect::DescribedFile facts_of(const std::string& path, const Session& session) {
  auto options = session.options<ChainOptions>();
  // Payloads are verified by what follows.
  options.read.verification = Verification::off;
  return inspect::describe_file(path, options);
}

VerifyReport verification_of(const std::string& path, const inspect::DescribedFile& facts,
                             const Session& session) {
  ProgressBar bar("verifying " + path);
  auto options = session.options<VerifyOptions>();
  options.work.progress = bar.callback();
  return verify_any(path, options, session.options<OpenOptions>(), facts.format, facts.is_delta);
}

void measure_all(PageReport& report, const AnyFile& file, const Session& session) {
  inspect::Selection everything("PATTERN", {});
  inspect::visit_tensors(file, everything, [&](const inspect::ShownTensor& tensor) {
    ReportedTensor reported{.listed = tensor.list()};
    reported.damage = damage_of(
        [&] { reported.measured = measured(tensor.open(), session.options<ReadOptions>().work); });
    report.tensors.push_back(std::move(reported));
  });
}

void add_histograms(PageReport& report, const AnyFile& file, const Session& session) {
  std::vector<std::uint64_t> sizes;
  for (const ReportedTensor& tensor : report.tensors)
    sizes.push_back(tensor.measured ? tensor.listed.elements() : 0);
  const std::vector<bool> taken = among_largest(sizes, kReportedHistograms);
  std::size_t place = 0;
  inspect::Selection everything("PATTERN", {});
  inspect::visit_tensors(file, everything, [&](const inspect::ShownTensor& tensor) {
    const std::size_t at = place++;
    if (!taken[at] || !report.tensors[at].measured) return;
    report.histograms.push_back(
        histogram_of(tensor.open(), *report.tensors[at].measured, session.stop));
  });
}

Comparison compared(const std::string& base, const std::string& path, FileFormat format,
                    const Session& session) {
  Comparison comparison{.base = base,
                        .changes = tensor_changes(base, path, session.options<ChainOptions>(),
                                                  session.options<DiffOptions>())};
  auto tables = session.options<ChainOptions>();
  if (format != FileFormat::thalia ||
      input_format(base, tables.read.input.access) != FileFormat::thalia)
    return comparison;
  tables.read.verification = Verification::off;
  comparison.diff = diff(ResolvedFile(base, {}, tables).reader(),
                         ResolvedFile(path, {}, tables).reader(), session.options<DiffOptions>());
  return comparison;
}

}  // namespace

PageReport report_of(const std::string& path, const std::string& base, const Session& session) {
  PageReport report{.facts = facts_of(path, session)};
  report.verified = verification_of(path, report.facts, session);
  const AnyFile file = inspect::open_stored(path, tensor_by_tensor(session));
  measure_all(report, file, session);
  add_histograms(report, file, session);
  if (!base.empty()) report.comparison = compared(base, path, report.facts.format, session);
  if (report.facts.is_delta)
    report.links = inspect::open_stored(path, session.options<ChainOptions>()).links();
  return report;
}

}  // namespace thalia::cli
