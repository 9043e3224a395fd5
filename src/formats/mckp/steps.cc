#include <cstddef>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "formats/source/byte_grouping.h"
#include "thalia/formats/mckp.h"

namespace thalia {
namespace {

void require_size(std::string_view what, std::size_t size, std::size_t expected) {
  if (size == expected) return;
  fail_argument(ErrorCode::size_mismatch, std::string(what), std::to_string(size) + " bytes",
                std::to_string(expected) + " bytes");
}

void check_elements(ByteSpan data, unsigned width, MutableByteSpan out) {
  if (width != 2 && width != 4 && width != 8)
    fail_argument(ErrorCode::bad_argument, "width", std::to_string(width), "2, 4 or 8 bytes");
  if (data.size() % width != 0) {
    fail_argument(ErrorCode::size_mismatch, "data", std::to_string(data.size()) + " bytes",
                  "a multiple of " + std::to_string(width));
  }
  require_size("out", out.size(), data.size());
}

}  // namespace

void group_bytes(ByteSpan data, unsigned width, MutableByteSpan out) {
  check_elements(data, width, out);
  formats::gather_planes(data, {}, width, 0, out);
}

void ungroup_bytes(ByteSpan data, unsigned width, MutableByteSpan out) {
  check_elements(data, width, out);
  formats::scatter_planes(data, width, 0, false, out);
}

void xor_bytes(ByteSpan data, ByteSpan previous, MutableByteSpan out) {
  require_size("previous", previous.size(), data.size());
  require_size("out", out.size(), data.size());
  formats::gather_planes(data, previous, 1, 0, out);
}

}  // namespace thalia
