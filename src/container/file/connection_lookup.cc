// Connections by the names of their ends. The table in the file is in no order, so the first
// look-up sorts the numbers of its entries by both names, and the open file keeps them. Their count
// was checked against the size of the section before. Where an entry is damaged the first look-up
// throws, and the next one tries again.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "container/file/open_file.h"
#include "format/connectivity.h"

namespace thalia::detail {

std::optional<std::uint32_t> OpenFile::find_connection(const container::ShortName& source,
                                                       const container::ShortName& target) const {
  const auto compare = [](const auto& a, const auto& b) {
    return std::memcmp(std::data(a), std::data(b), sizeof(container::ShortName));
  };
  connections_once_.run([&] {
    std::vector<std::uint32_t> order(connection_count());
    std::iota(order.begin(), order.end(), 0u);
    for (const std::uint32_t i : order) connection_entry(i);  // checks what is compared below
    // Stable, as a faulty file may name a pair twice: the first in the table is found then.
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const format::ConnectionEntry& left = connection_entry(a);
      const format::ConnectionEntry& right = connection_entry(b);
      const int sources = compare(left.source_region, right.source_region);
      return sources != 0 ? sources < 0 : compare(left.target_region, right.target_region) < 0;
    });
    connections_by_names_ = std::move(order);
  });
  const auto found = std::partition_point(
      connections_by_names_.begin(), connections_by_names_.end(), [&](std::uint32_t i) {
        const format::ConnectionEntry& entry = connection_entry(i);
        const int sources = compare(entry.source_region, source);
        return sources != 0 ? sources < 0 : compare(entry.target_region, target) < 0;
      });
  if (found == connections_by_names_.end()) return std::nullopt;
  const format::ConnectionEntry& entry = connection_entry(*found);
  if (compare(entry.source_region, source) != 0 || compare(entry.target_region, target) != 0)
    return std::nullopt;
  return *found;
}

}  // namespace thalia::detail
