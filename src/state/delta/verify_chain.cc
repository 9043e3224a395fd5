// Verifies a delta, each file that it is based on, and each tensor that comes out of them. The
// delta alone comes first: if it is damaged, nothing that it says of its bases is followed.
#include <string>
#include <utility>

#include "container/read/reader_of.h"
#include "container/verify/findings.h"
#include "container/verify/verify_bytes.h"
#include "state/delta/file_chain.h"
#include "thalia/state/delta.h"
#include "thalia/text.h"

namespace thalia {
namespace {

void check_tensors(const ChainReader& chain, container::Findings& findings) {
  // Reading a tensor holds it against its content hash and CRC-32.
  const auto check = [&](const TensorView& tensor) { findings.check([&] { chain.read(tensor); }); };
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
  return state::verify_chain(path, options, search, bases);
}

VerifyReport state::verify_chain(const io::InputFile& input, const VerifyOptions& options,
                                 const std::vector<std::filesystem::path>& search,
                                 const BasePolicy& bases) {
  container::Findings findings(options.max_findings);
  findings.add_report(container::verify_input(input, options));
  if (!findings.ok()) return std::move(findings).finish();
  findings.check([&] {
    ChainOptions chain_options;
    chain_options.read.input = options.input;
    chain_options.read.work = options.work;
    chain_options.search = search;
    chain_options.bases = bases;
    const ChainReader chain =
        ChainReader::open(container::open_reader(input, chain_options.read), chain_options);
    const auto paths = chain.paths();
    // Number 0 is the delta, which was verified above, and lists all that its bases have.
    for (std::size_t i = 1; i < paths.size(); ++i) {
      VerifyReport base = verify(paths[i], options);
      base.regions = base.tensors = base.tensors_compared = 0;
      findings.add_report(base, "of '" + printable(paths[i].string()) + "': ");
    }
    if (!options.quick && chain.depth() > 0) check_tensors(chain, findings);
  });
  return std::move(findings).finish();
}

}  // namespace thalia
