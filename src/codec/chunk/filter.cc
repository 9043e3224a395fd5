// Translates the filter of a chunk's entry into a word width and whether differences are taken; the
// work itself is in codec/planes/split.h. A filter never changes the length, and undoing it is
// defined for any bytes. So a filter cannot fail on a hostile chunk: only its number can be
// unknown.
#include "codec/chunk/filter.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/fail.h"
#include "codec/planes/split.h"

namespace thalia::codec {
namespace {

using format::Filter;

struct Transform {
  std::size_t width = 0;  ///< of a word; 0: nothing is done
  bool differences = false;
};

Transform transform_of(Filter filter) {
  switch (filter) {
    case Filter::none:
      return {};
    case Filter::byte_planes_2:
      return {2};
    case Filter::byte_planes_4:
      return {4};
    case Filter::byte_planes_8:
      return {8};
    case Filter::difference_planes_4:
      return {4, true};
    case Filter::difference_planes_8:
      return {8, true};
  }
  throw UnsupportedError(ErrorCode::unsupported_feature, "this version has no such filter",
                         {.section = "payload",
                          .field = "filter",
                          .value = std::to_string(static_cast<int>(filter)),
                          .bound = fmt::format("at most {}", format::kFilterCount - 1)});
}

}  // namespace

std::span<const Filter> filters_for(ElementLayout layout) noexcept {
  static constexpr std::array kNone{Filter::none};
  static constexpr std::array k2{Filter::none, Filter::byte_planes_2};
  static constexpr std::array k4{Filter::none, Filter::byte_planes_4, Filter::difference_planes_4};
  static constexpr std::array k8{Filter::none, Filter::byte_planes_8, Filter::difference_planes_8};
  // Differences come last, so that they can be left off for floats: the bits of neighbouring
  // floats differ as much as the floats themselves.
  const std::size_t count = layout.content == Content::floats ? 2 : 3;
  if (layout.content == Content::bytes) return kNone;
  if (layout.element_bytes == 2) return k2;
  if (layout.element_bytes == 4) return std::span(k4).first(count);
  if (layout.element_bytes == 8) return std::span(k8).first(count);
  return kNone;
}

void check_filter(Filter filter) {
  static_cast<void>(transform_of(filter));
}

void apply_filter(Filter filter, ByteSpan raw, MutableByteSpan out) {
  const auto [width, differences] = transform_of(filter);
  if (width == 0) {
    std::copy(raw.begin(), raw.end(), out.begin());
  } else {
    differences ? split_difference_planes(width, raw, out) : split_planes(width, raw, out);
  }
}

void undo_filter(Filter filter, ByteSpan filtered, MutableByteSpan raw) {
  const auto [width, differences] = transform_of(filter);
  if (width == 0) {
    std::copy(filtered.begin(), filtered.end(), raw.begin());
  } else {
    differences ? join_difference_planes(width, filtered, raw) : join_planes(width, filtered, raw);
  }
}

}  // namespace thalia::codec
