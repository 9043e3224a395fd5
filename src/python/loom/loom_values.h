// Networks of Loom as Python has them. Out is a dict of what the dataclasses of
// thalia_checkpoint.loom hold; in is an object with attributes of the same names. What lies in a
// mapping stays there, and what Python holds is not copied.
#pragma once

#include <string>

#include <nanobind/nanobind.h>

#include "python/objects.h"
#include "thalia/formats/loom.h"

namespace thalia::python {

/// By any of its names. @throws UsageError (bad_argument) that lists them.
LoomDType loom_dtype(const std::string& name);

Members weights_out(const LoomWeights& weights);
Members transformer_out(const LoomTransformer& transformer);
Members network_out(const LoomNetwork& network);

/// @throws TypeError naming the attribute; UsageError (bad_argument) for a name that Loom does not
/// have, and for layers within each other that have no end.
LoomLayer layer_in(nanobind::handle object, unsigned depth = 0);
LoomNetwork network_in(nanobind::handle object);

}  // namespace thalia::python
