// The sum itself is ISA-L's, which uses carry-less products of whole vectors if the processor
// has them, and is then faster than memory. Combining two sums is done here, in steps
// as many as the length has bits, so that threads can sum up parts.
#include "integrity/crc32.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/parallel.h"
#include "integrity/vector_state.h"

namespace thalia::integrity {
namespace {

// Polynomials over GF(2) modulo that of the CRC, with bits reflected: the top bit is the
// coefficient of x^0.
constexpr std::uint32_t kPolynomial = 0xedb88320;
constexpr std::uint32_t kOne = 1u << 31;
constexpr std::uint32_t kX8 = kOne >> 8;

constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);  // times x
  }
  return product;
}

}  // namespace

std::uint32_t crc32(ByteSpan bytes, std::uint32_t crc) noexcept {
  // An empty span may have no address.
  if (bytes.empty()) return crc;
  crc = crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  // ISA-L leaves that to its caller.
  clear_upper_vectors();
  return crc;
}

std::uint32_t crc32_of_all(ByteSpan bytes, unsigned threads) {
  constexpr std::size_t kLeast = 1 << 20;  // long beside the start of a thread
  threads = resolve_threads(threads, bytes.size() / kLeast);
  // Few, as combining takes microseconds, and more than threads, as these need not be as fast.
  const std::size_t length = std::max(kLeast, bytes.size() / (2 * threads) + 1);
  const auto piece = [&](std::size_t i) {
    return bytes.subspan(i * length, std::min(length, bytes.size() - i * length));
  };
  std::vector<std::uint32_t> crcs((bytes.size() + length - 1) / length);
  parallel_for(crcs.size(), threads, [&](std::size_t i) { crcs[i] = crc32(piece(i)); });
  std::uint32_t crc = 0;
  for (std::size_t i = 0; i < crcs.size(); ++i) crc = crc32_combine(crc, crcs[i], piece(i).size());
  return crc;
}

// Appending B, of n bytes, to A multiplies A's CRC by x^(8n), here by repeated squaring; the
// inversions before and after cancel out.
std::uint32_t crc32_combine(std::uint32_t crc_a, std::uint32_t crc_b,
                            std::uint64_t length_b) noexcept {
  if (crc_a == 0) return crc_b;  // above all the first piece of something: A is empty
  std::uint32_t shift = kOne;
  for (std::uint32_t power = kX8; length_b != 0; length_b >>= 1) {
    if ((length_b & 1) != 0) shift = multiply(shift, power);
    power = multiply(power, power);
  }
  return multiply(shift, crc_a) ^ crc_b;
}

}  // namespace thalia::integrity
