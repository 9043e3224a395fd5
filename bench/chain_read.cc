// What bench/delta_benchmark.py drives: reads all tensors of checkpoints into memory that is there,
// through their chains. chain_read ROUNDS FILE… prints a line a round: the seconds of each file, in
// their order; the files take turns, and a first round does not count.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/stopwatch.h"
#include "thalia/error.h"
#include "thalia/state/delta.h"

using namespace thalia;

namespace {

// Opening is part of it.
double seconds_to_read(const char* path, std::vector<std::byte>& memory) {
  const Stopwatch watch;
  const ChainReader chain = ChainReader::open(path);
  const Reader& reader = chain.reader();
  std::uint64_t at = 0;
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      const TensorView tensor = region.tensor(t);
      const std::uint64_t length = chain.describe(tensor).logical_bytes;
      if (memory.size() - at < length) memory.resize(at + length);
      chain.read(tensor, MutableByteSpan(memory).subspan(at, length));
      at += length;
    }
  }
  return watch.seconds();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: chain_read ROUNDS FILE...\n");
    return 2;
  }
  try {
    std::vector<std::byte> memory;
    const int rounds = std::atoi(argv[1]);
    for (int round = 0; round <= rounds; ++round) {
      std::vector<double> seconds(static_cast<std::size_t>(argc - 2));
      for (int i = 2; i < argc; ++i) {
        // Forwards and backwards by turns.
        const int file = round % 2 == 0 ? i : argc + 1 - i;
        seconds[static_cast<std::size_t>(file - 2)] = seconds_to_read(argv[file], memory);
      }
      if (round == 0) continue;
      for (const double each : seconds) std::printf("%.6f ", each);
      std::printf("\n");
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "chain_read: %s\n", error.what());
    return 1;
  }
}
