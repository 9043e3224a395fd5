#include "store/pool/seeded_words.h"

#include "integrity/sha256.h"

namespace thalia::store {

std::array<std::uint64_t, 4> seeded_words(std::string_view purpose,
                                          std::initializer_list<std::uint64_t> numbers,
                                          std::string_view text) {
  integrity::Sha256 hasher;
  hasher.update(as_byte_span(purpose));
  for (const std::uint64_t number : numbers) {
    std::array<std::uint8_t, 8> bytes;
    for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
    hasher.update(as_byte_span(bytes));
  }
  hasher.update(as_byte_span(text));
  const Digest256 digest = hasher.finish();
  std::array<std::uint64_t, 4> words{};
  for (unsigned i = 0; i < 32; ++i) words[i / 8] |= std::uint64_t{digest.bytes[i]} << (8 * (i % 8));
  return words;
}

}  // namespace thalia::store
