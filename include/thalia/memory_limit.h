// How much memory files may take where nobody says it file by file.
#pragma once

#include <cstdint>

namespace thalia {

/// From now on stands for ReadLimits::max_allocation_bytes in this process wherever that is not
/// set; 0: what fits the file and the machine again (docs/security.md, "Limits"). Any thread.
void set_default_allocation_limit(std::uint64_t bytes) noexcept;

}  // namespace thalia
