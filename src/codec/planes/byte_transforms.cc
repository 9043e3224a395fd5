#include "thalia/types.h"

#include "base/byte_xor.h"
#include "base/fail.h"
#include "codec/planes/split.h"

namespace thalia {
namespace {

void check_grouping(std::size_t width, std::size_t from, std::size_t to) {
  if (width != 2 && width != 4 && width != 8)
    fail_argument(ErrorCode::bad_argument, "width", std::to_string(width), "2, 4 or 8");
  if (from != to)
    fail_argument(ErrorCode::size_mismatch, "bytes", std::to_string(to), std::to_string(from));
}

}  // namespace

void group_bytes(std::size_t width, ByteSpan bytes, MutableByteSpan grouped) {
  check_grouping(width, bytes.size(), grouped.size());
  codec::split_planes(width, bytes, grouped);
}

void ungroup_bytes(std::size_t width, ByteSpan grouped, MutableByteSpan bytes) {
  check_grouping(width, grouped.size(), bytes.size());
  codec::join_planes(width, grouped, bytes);
}

void xor_bytes(MutableByteSpan bytes, ByteSpan other) {
  if (bytes.size() != other.size()) {
    fail_argument(ErrorCode::size_mismatch, "other", std::to_string(other.size()),
                  std::to_string(bytes.size()));
  }
  xor_into(bytes, other);
}

}  // namespace thalia
