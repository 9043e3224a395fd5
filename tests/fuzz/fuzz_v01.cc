// Decodes any bytes as a file of version 0.1, with its wrapper or without, its checksum made right
// if there is no wrapper. What is accepted survives being written and read again.

#include <cstring>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "integrity/sha256.h"
#include "thalia/error.h"
#include "thalia/formats/v01.h"

using namespace thalia;

namespace {
namespace v01_target {

constexpr std::size_t kTrailer = 32;

ReadLimits tight_limits() {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  limits.max_json_depth = 64;
  return limits;
}

void require_round_trip(const V01File& file) {
  std::vector<std::byte> bytes;
  try {
    bytes = encode_v01(file.document);
  } catch (const UnsupportedError&) {
    return;  // a name of 32 bytes, which can be read and not written
  }
  const V01File again = decode_v01(bytes);
  FUZZ_REQUIRE(again.document.entries == file.document.entries);
  FUZZ_REQUIRE(again.document.metadata == file.document.metadata);
  FUZZ_REQUIRE(encode_v01(again.document) == bytes);
}

void decode(ByteSpan file) {
  try {
    require_round_trip(decode_v01(file, nullptr, tight_limits()));
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input = std::as_bytes(std::span(data, size));
  decode(input);
  if (size < kTrailer) return;
  std::vector<std::byte> sealed(input.begin(), input.end());
  const Digest256 digest = integrity::sha256(input.first(size - kTrailer));
  std::memcpy(sealed.data() + size - kTrailer, digest.bytes, kTrailer);
  decode(sealed);
}

}  // namespace v01_target
}  // namespace

FUZZ_TARGET(v01)
