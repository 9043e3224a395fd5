// What headers repeat of the directory, held against it: totals, sums, the pieces of regions, state
// headers, the ends of connections. This library finds nothing through these; other programs may.
#pragma once

#include "container/verify/findings.h"
#include "container/verify/structure.h"

namespace thalia::container {

/// Where a table or a tensor is not sound, which verify_structure() has said, what depends on it is
/// left out.
void verify_consistency(const detail::OpenFile& file, const Structure& structure,
                        Findings& findings);

}  // namespace thalia::container
