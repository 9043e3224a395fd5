#include "interop/shared/json_fields.h"

#include <vector>

namespace thalia::interop {

Shape read_shape(json::Value& value) {
  require_kind(value, json::Kind::array, "shape");
  std::vector<std::uint64_t> extents;
  std::uint64_t rank = 0;
  value.for_each_element([&](json::Value& element) {
    const std::uint64_t extent = read_integer(element, "shape");
    // All are counted, for the message, but no more are kept than a shape has.
    if (++rank <= Shape::kMaxRank) extents.push_back(extent);
  });
  if (rank > Shape::kMaxRank) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "too many dimensions",
                           {.section = "header",
                            .field = "shape",
                            .value = std::to_string(rank),
                            .bound = "at most " + std::to_string(Shape::kMaxRank)});
  }
  return Shape(extents);
}

}  // namespace thalia::interop
