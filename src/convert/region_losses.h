// What a .thalia file says of its regions that formats without them have no place for.
#pragma once

#include <string>
#include <vector>

#include "thalia/formats/convert.h"
#include "thalia/reader.h"

namespace thalia::formats {

/// A sentence for each kind of thing; nothing is read but the tables. `of_places` gets those of
/// them that OpenedFile::place() tells all the same.
void list_region_losses(const Reader& reader, const RegionGrouping& grouping,
                        const ReadLimits& limits, std::vector<std::string>& losses,
                        std::vector<std::string>& of_places);

}  // namespace thalia::formats
