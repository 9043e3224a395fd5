// Chooses symbols and code width from counts. Ties go to the smaller byte and the narrower code, so
// that the answer is the same with every standard library and on every machine.
#include "codec/exponents/code.h"

#include <algorithm>
#include <numeric>

namespace thalia::codec {

ExponentCode choose_exponent_code(const ByteCounts& counts, unsigned symbol_bits) {
  ExponentCode code{.symbol_bits = symbol_bits};
  ByteCounts of_symbol{};
  for (unsigned byte = 0; byte < counts.size(); ++byte)
    of_symbol[byte & code.symbol_mask()] += counts[byte];
  std::array<std::uint8_t, 256> order;
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  std::partial_sort(order.begin(), order.begin() + code.symbols.size(), order.end(),
                    [&](std::uint8_t a, std::uint8_t b) {
                      return of_symbol[a] != of_symbol[b] ? of_symbol[a] > of_symbol[b] : a < b;
                    });
  const std::uint64_t total = sum_of(counts);
  std::uint64_t escapes = total, fewest = UINT64_MAX;
  unsigned best = 1, coded = 0;
  // Wider codes cost every byte a bit and save escapes; `escapes` falls as more symbols get a code.
  for (code.code_bits = 1; code.code_bits <= ExponentCode::kMaxCodeBits; ++code.code_bits) {
    while (coded < code.escape()) escapes -= of_symbol[order[coded++]];
    const std::uint64_t bits = code.bits(total, escapes);
    if (bits >= fewest) continue;
    fewest = bits;
    best = code.code_bits;
  }
  code.code_bits = best;
  for (unsigned i = 0; i < code.escape(); ++i) code.symbols[i] = order[i] & code.symbol_mask();
  return code;
}

}  // namespace thalia::codec
