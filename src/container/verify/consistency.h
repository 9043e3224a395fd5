// What headers repeat of the directory, compared with it: totals, sums, the pieces of regions,
// state headers, the ends of connections. This library finds nothing by these fields; other
// programs may.
#pragma once

#include "container/verify/findings.h"
#include "container/verify/structure.h"

namespace thalia::container {

/// Leaves out what depends on a table or a tensor that is not sound, as verify_structure() has
/// reported that.
void verify_consistency(const detail::OpenFile& file, const Structure& structure,
                        Findings& findings);

}  // namespace thalia::container
