// Regions and tensors by their names: binary searches in tables that are ordered by name.
//
// Verifying each entry that a search passes would hash a block at nearly every step. So a search
// first passes over the entries as they lie, and believes nothing of them. Then it verifies the
// place where it ended: the entry there has the name, or its two neighbours show that the name
// would be between them. If neither is so, an entry on the way was damaged or out of order. A
// second search then verifies every step, and ends with the error of the damaged block, or with the
// answer. docs/format/format.md, "Look-up".
#include "container/file/open_file.h"
#include "format/directory.h"
#include "format/tensor.h"

namespace thalia::detail {
namespace {

// Where a name is, or where it would be.
struct Place {
  std::uint32_t index;
  bool found;
};

template <typename NameAt>
Place search(std::uint32_t first, std::uint32_t last, std::string_view wanted, NameAt name_at) {
  while (first < last) {
    // Halving ends after some 32 steps, also in a table that is in no order.
    const std::uint32_t middle = first + (last - first) / 2;
    const int order = name_at(middle).compare(wanted);
    if (order == 0) return {middle, true};
    if (order < 0) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return {first, false};
}

}  // namespace

/// @param name_at takes a place in [first, last) and how to look at it.
template <typename NameAt>
std::optional<std::uint32_t> OpenFile::find_name(std::uint32_t first, std::uint32_t last,
                                                 std::string_view wanted, NameAt name_at) const {
  const auto verified_at = [&](std::uint32_t i) { return name_at(i, As::verified); };
  if (checks_blocks()) {
    try {
      const Place place =
          search(first, last, wanted, [&](std::uint32_t i) { return name_at(i, As::it_lies); });
      if (place.found) {
        if (verified_at(place.index) == wanted) return place.index;
      } else if ((place.index == first || verified_at(place.index - 1) < wanted) &&
                 (place.index == last || verified_at(place.index) > wanted)) {
        return std::nullopt;
      }
    } catch (const FormatError&) {
      // The entry may lie in a damaged block, and then that is the error: the second search tells.
    }
  }
  const Place place = search(first, last, wanted, verified_at);
  return place.found ? std::optional(place.index) : std::nullopt;
}

std::optional<std::uint32_t> OpenFile::find_region(std::string_view wanted) const {
  return named([&]() -> std::optional<std::uint32_t> {
    const auto found = find_name(0, directory_->region_count, wanted, [&](std::uint32_t i, As as) {
      const format::DirectoryRegion& record = directory_region(ordered_region(i, as), as);
      return name(record.name_offset, record.name_length, as);
    });
    if (!found) return std::nullopt;
    const std::uint32_t region = ordered_region(*found);
    // The connectivity section has no name to ask for.
    return region == region_count() ? std::nullopt : std::optional(region);
  });
}

std::optional<std::uint32_t> OpenFile::find_tensor(std::uint32_t region,
                                                   std::string_view wanted) const {
  return named([&] {
    const format::DirectoryRegion& record = directory_region(region);
    return find_name(record.first_tensor, record.first_tensor + record.tensor_count, wanted,
                     [&](std::uint32_t i, As as) {
                       const format::TensorEntry& entry = tensor_entry(i, as);
                       return name(entry.name_offset, entry.name_length, as);
                     });
  });
}

}  // namespace thalia::detail
