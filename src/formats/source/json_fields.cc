#include "formats/source/json_fields.h"

#include <unordered_set>
#include <vector>

namespace thalia::formats {

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

void read_tensors(json::Value& value, std::string_view field, std::uint64_t max_tensors,
                  const json::MemberVisitor& read) {
  require_kind(value, json::Kind::object, field);
  std::unordered_set<std::string> names;
  value.for_each_member([&](std::string_view name, json::Value& tensor) {
    // Before the tensor is read: the limit bounds memory.
    if (names.size() == max_tensors)
      fail_limit("header", "max_tensors", names.size() + 1, max_tensors);
    if (!names.emplace(name).second)
      fail_header(ErrorCode::bad_name, field, printable(name), "", "the name repeats");
    try {
      read(name, tensor);
    } catch (Error& error) {
      error.add_tensor(printable(name));
      throw;
    }
  });
}

}  // namespace thalia::formats
