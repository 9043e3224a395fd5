// Reads any bytes as a zip archive, and all members of it.

#include <span>
#include <vector>

#include "formats/zip/directory.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace zip_target {

void read_member(const formats::ZipDirectory& zip, const formats::ZipMember& member,
                 const ReadLimits& limits) {
  try {
    const std::vector<std::byte> raw = zip.read(member, limits);
    FUZZ_REQUIRE(raw.size() == member.raw_bytes);
    zip.check_crc(member);
    FUZZ_REQUIRE(zip.read_start(member, 8).size() == std::min<std::size_t>(8, raw.size()));
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const formats::ZipDirectory zip = formats::ZipDirectory::parse(bytes, limits);
    std::uint64_t stored = 0;
    for (const formats::ZipMember& member : zip.members()) {
      FUZZ_REQUIRE(member.offset <= size && member.stored_bytes <= size - member.offset);
      FUZZ_REQUIRE(zip.find(member.name) == &member);
      stored += member.stored_bytes;
      read_member(zip, member, limits);
    }
    FUZZ_REQUIRE(stored <= size);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace zip_target
}  // namespace

FUZZ_TARGET(zip)
