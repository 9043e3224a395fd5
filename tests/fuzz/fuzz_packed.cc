// The head, digests and payloads of a packed delta, in a frame that is made here: so any bytes get
// as far as the columns, which a frame's checksum would keep them from. The first three bytes say
// how long the contents are, the next two how long the head is. What comes out by chance is opened.

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "codec/frame/frame.h"
#include "container/wrap/packed.h"
#include "format/overlay.h"
#include "format/packed.h"
#include "fuzz/fuzz_target.h"
#include "support/damage.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

namespace {
namespace packed_target {

// Makes what the bytes stand for, or refuses it.
void make(ByteSpan file) {
  try {
    std::vector<std::byte> contents(
        std::min<std::uint64_t>(container::packed_contents_length(file), 4 << 20));
    container::unpack(file, contents, tight_limits());
    FUZZ_REQUIRE(!contents.empty());
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  make(bytes);
  constexpr std::size_t kLengths = 5;
  if (size < kLengths) return;
  const std::size_t contents = data[0] | data[1] << 8 | data[2] << 16;
  const std::size_t wanted = data[3] | data[4] << 8;
  const ByteSpan rest = bytes.subspan(kLengths);
  const ByteSpan head = rest.first(std::min(wanted, rest.size()));
  std::vector<std::byte> frame;
  codec::encode_frame(Codec::zstd, 1, head, frame);
  format::PackedHeader header{};
  std::memcpy(header.magic, format::kPackedMagic, sizeof header.magic);
  header.packed_version = format::kPackedVersion;
  header.contents_length = static_cast<std::uint32_t>(contents);
  header.frame_length = static_cast<std::uint32_t>(frame.size());
  std::vector<std::byte> file;
  for (const ByteSpan part :
       {format::struct_bytes(header), ByteSpan(frame), rest.subspan(head.size())})
    file.insert(file.end(), part.begin(), part.end());
  make(file);
}

}  // namespace packed_target
}  // namespace

FUZZ_TARGET(packed)
