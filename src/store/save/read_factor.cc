// A sample of pieces all over the state, read once through the chain and once from the full file at
// its end. Both come from the disk: what the page cache has of the files is dropped first, as it
// would say more of the machine's memory than of the chain.
#include <algorithm>
#include <vector>

#include "base/stopwatch.h"
#include "container/file/open_file.h"
#include "io/posix_file.h"
#include "model/delta/access.h"
#include "store/save/delta_choice.h"

namespace thalia::store {
namespace {

constexpr std::uint64_t kSampled = 1 << 20;
constexpr std::uint64_t kMostPieces = 16;
// Less takes too little time to be told from noise.
constexpr std::uint64_t kFewestPieces = 4;

struct Sample {
  TensorView in_chain;
  TensorView in_full;
  std::uint64_t begin;
};

std::vector<Sample> samples_of(const ChainReader& chain, const ChainReader& full) {
  std::vector<Sample> found;
  const Reader& reader = chain.reader();
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    const auto same = full.reader().find_region(region.name());
    if (!same) continue;
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      const TensorView tensor = region.tensor(i);
      const auto match = same->find(tensor.name());
      if (!match) continue;
      const std::uint64_t bytes =
          std::min(chain.describe(tensor).logical_bytes, full.describe(*match).logical_bytes);
      for (std::uint64_t begin = 0; begin + kSampled <= bytes; begin += kSampled)
        found.push_back({tensor, *match, begin});
    }
  }
  if (found.size() <= kMostPieces) return found;
  std::vector<Sample> chosen;
  for (std::uint64_t i = 0; i < kMostPieces; ++i)
    chosen.push_back(found[i * found.size() / kMostPieces]);
  return chosen;
}

void forget(const ChainReader& chain) {
  const model::FileChain& files = DeltaAccess::files(chain);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const io::FileBytes& bytes = files.file(i).mapping();
    bytes.advise(0, bytes.bytes().size(), io::Advice::dont_need);
    io::drop_cache(bytes.fd());
  }
}

double seconds_to_read(const ChainReader& chain, const std::vector<Sample>& samples,
                       TensorView Sample::*which) {
  std::vector<std::byte> piece(kSampled);
  const Stopwatch watch;
  for (const Sample& sample : samples) chain.read_part(sample.*which, sample.begin, piece);
  return watch.seconds();
}

}  // namespace

std::optional<double> measure_read_factor(const std::filesystem::path& delta) {
  const ChainOptions options{.read = {.verification = Verification::off, .work = {.threads = 1}}};
  const ChainReader chain = ChainReader::open(delta, options);
  const ChainReader full = ChainReader::open(chain.paths().back(), options);
  const std::vector<Sample> samples = samples_of(chain, full);
  if (samples.size() < kFewestPieces) return std::nullopt;
  forget(chain);
  const double chained = seconds_to_read(chain, samples, &Sample::in_chain);
  forget(chain);
  const double alone = seconds_to_read(full, samples, &Sample::in_full);
  if (alone <= 0) return std::nullopt;
  return std::max(chained / alone, 1.0);
}

}  // namespace thalia::store
