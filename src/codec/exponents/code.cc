// Chooses symbols and code width from counts. Ties go to the smaller byte and the narrower code, so
// that the answer is the same with every standard library and on every machine.
#include "codec/exponents/code.h"

#include <algorithm>
#include <cassert>

namespace thalia::codec {

ExponentCode choose_exponent_code(const ByteCounts& counts, unsigned symbol_bits) {
  ExponentCode code{.symbol_bits = symbol_bits};
  ByteCounts of_symbol{};
  for (unsigned byte = 0; byte < counts.size(); ++byte)
    of_symbol[byte & code.symbol_mask()] += counts[byte];
  assert(symbol_bits >= ExponentCode::kMaxCodeBits);
  // Only what can be a symbol, and there are at least as many as codes, so that no two codes stand
  // for the same one: with two, an encoder could take either, or mix them.
  std::array<std::uint8_t, 256> order{};
  std::size_t count = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if ((byte & code.symbol_mask()) == byte) order[count++] = static_cast<std::uint8_t>(byte);
  }
  std::partial_sort(order.begin(), order.begin() + code.symbols.size(), order.begin() + count,
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
  for (unsigned i = 0; i < code.escape(); ++i) code.symbols[i] = order[i];
  return code;
}

}  // namespace thalia::codec
