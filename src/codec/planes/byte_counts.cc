// Every plane that may be coded is counted first, so counting has to be fast. Counts have 32 bits,
// which is why spans of 2^32 bytes and more are not taken.
#include "codec/planes/byte_counts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace thalia::codec {

std::uint64_t sum_of(const ByteCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

ByteCounts count_bytes(ByteSpan bytes, std::size_t run, std::size_t step) {
  // Equal neighbours would wait for each other's increment in one table; with eight tables, each
  // byte of a word has its own.
  constexpr std::size_t kTables = 8;
  std::array<ByteCounts, kTables> tables{};
  while (!bytes.empty()) {
    const ByteSpan part = bytes.first(std::min(run, bytes.size()));
    std::size_t i = 0;
    for (; i + kTables <= part.size(); i += kTables) {
      std::uint64_t word;
      std::memcpy(&word, part.data() + i, sizeof(word));
      for (std::size_t k = 0; k < kTables; ++k) ++tables[k][word >> (8 * k) & 0xff];
    }
    for (; i < part.size(); ++i) ++tables[0][std::to_integer<std::size_t>(part[i])];
    bytes = bytes.subspan(std::min(step, bytes.size()));
  }
  for (std::size_t k = 1; k < kTables; ++k)
    for (std::size_t j = 0; j < tables[0].size(); ++j) tables[0][j] += tables[k][j];
  return tables[0];
}

std::size_t distinct_bytes(const ByteCounts& counts) {
  return counts.size() -
         static_cast<std::size_t>(std::count(counts.begin(), counts.end(), std::uint32_t{0}));
}

double entropy_bits(const ByteCounts& counts) {
  const auto total = static_cast<double>(sum_of(counts));
  double bits = total * std::log2(total);
  for (const std::uint32_t count : counts)
    if (count != 0) bits -= count * std::log2(static_cast<double>(count));
  // A sample looks less varied than the whole it is taken from: on average by half a nat for each
  // distinct byte but one (Miller and Madow). 1.4427 bits are a nat.
  return bits + static_cast<double>(distinct_bytes(counts) - 1) / 2 * 1.4427;
}

}  // namespace thalia::codec
