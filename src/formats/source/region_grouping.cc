// Formats without regions name a layer's tensors alike: `layers.3.attention.weight`. The automatic
// rule makes a region of everything up to the first number, or of all but the last part if there
// is no number. That fits the names that frameworks give to layers, and the same names give the
// same regions every time.
#include <algorithm>

#include "format/constants.h"
#include "thalia/formats/file_facts.h"

namespace thalia {
namespace {

constexpr std::string_view kDefaultRegion = "model";

bool is_number(std::string_view part) {
  return !part.empty() &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Length of the first `count` dotted parts of `name`, of all but the last at most.
std::size_t length_of_parts(std::string_view name, unsigned count) {
  std::size_t length = 0;
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t dot = name.find('.', i == 0 ? 0 : length + 1);
    if (dot == std::string_view::npos) break;
    length = dot;
  }
  return length;
}

std::size_t automatic_length(std::string_view name) {
  for (std::size_t start = 0; start <= name.size();) {
    const std::size_t end = std::min(name.find('.', start), name.size());
    if (is_number(name.substr(start, end - start))) return end;
    start = end + 1;
  }
  const std::size_t last_dot = name.rfind('.');
  return last_dot == std::string_view::npos ? 0 : last_dot;
}

std::size_t prefix_length(std::string_view name, const RegionGrouping& grouping) {
  switch (grouping.kind) {
    case RegionGrouping::Kind::automatic:
      return automatic_length(name);
    case RegionGrouping::Kind::depth:
      return length_of_parts(name, grouping.depth);
    case RegionGrouping::Kind::none:
      return 0;
  }
  return 0;
}

}  // namespace

std::string region_for_name(std::string_view tensor_name, const RegionGrouping& grouping) {
  const std::string_view region = tensor_name.substr(0, prefix_length(tensor_name, grouping));
  // A tensor's name may hold what a region's must not.
  const bool legal = !region.empty() && region.size() <= format::kMaxNameLength &&
                     region.find('\0') == std::string_view::npos;
  return std::string(legal ? region : kDefaultRegion);
}

}  // namespace thalia
