// Verifies a delta, each file that it is based on, and each tensor that comes out of them. The
// delta alone comes first: if it is damaged, nothing that it says of its bases is followed.
#include <string>
#include <utility>

#include "base/stopwatch.h"
#include "container/verify/findings.h"
#include "thalia/state/delta.h"
#include "thalia/text.h"

namespace thalia {
namespace {

// Appends findings in their order; `file` is the base they are about, empty for the chain itself.
void append(VerifyReport& report, VerifyReport other, const std::string& file, std::uint64_t most) {
  report.bytes_checked += other.bytes_checked;
  report.suppressed += other.suppressed;
  report.suppressed_errors += other.suppressed_errors;
  for (Finding& finding : other.findings) {
    if (report.findings.size() >= most) {
      ++report.suppressed;
      if (finding.severity == Severity::error) ++report.suppressed_errors;
      continue;
    }
    if (!file.empty()) finding.message = "of '" + printable(file) + "': " + finding.message;
    report.findings.push_back(std::move(finding));
  }
}

// Runs a check of the chain; what it throws is a finding.
template <typename Check>
void note(container::Findings& findings, Check check) {
  findings.check([&] {
    try {
      check();
    } catch (Error& error) {
      error.add_section("file");
      throw;
    }
  });
}

void check_tensors(const ChainReader& chain, container::Findings& findings) {
  // Reading a tensor holds it against its content hash and CRC-32.
  const auto check = [&](const TensorView& tensor) { note(findings, [&] { chain.read(tensor); }); };
  const Reader& reader = chain.reader();
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) check(region.tensor(t));
  }
  for (std::uint32_t c = 0; c < reader.connection_count(); ++c) {
    const ConnectionView connection = reader.connection(c);
    check(connection.weights);
    if (connection.delays) check(*connection.delays);
  }
}

}  // namespace

VerifyReport verify_chain(const std::filesystem::path& path, const VerifyOptions& options,
                          const std::vector<std::filesystem::path>& search,
                          const BasePolicy& bases) {
  const Stopwatch watch;
  VerifyReport report = verify(path, options);
  if (!report.ok()) return report;
  container::Findings findings(options.max_findings);
  note(findings, [&] {
    ChainOptions chain_options;
    chain_options.read.input = options.input;
    chain_options.read.work = options.work;
    chain_options.search = search;
    chain_options.bases = bases;
    const ChainReader chain = ChainReader::open(path, chain_options);
    const auto paths = chain.paths();
    // Number 0 is the delta, which was verified above.
    for (std::size_t i = 1; i < paths.size(); ++i)
      append(report, verify(paths[i], options), paths[i].string(), options.max_findings);
    if (!options.quick && chain.depth() > 0) check_tensors(chain, findings);
  });
  VerifyReport of_chain;
  findings.deliver(of_chain);
  append(report, std::move(of_chain), {}, options.max_findings);
  report.seconds = watch.seconds();
  return report;
}

}  // namespace thalia
