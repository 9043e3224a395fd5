// A file against the sample it was written from.
#pragma once

#include "support/sample.h"
#include "thalia/reader.h"

namespace thalia::test {

/// BOOST_TESTs everything that a reader says about a file: names, specs, JSON texts, connections,
/// totals, and every payload through every view that its encoding allows.
void check_same(const Reader& reader, const Sample& sample);
void check_same(const TensorView& view, const SampleTensor& tensor);

/// Saves, checks that verify finds nothing, opens it mapped and copied and
/// compares. @return the
/// file's bytes.
std::string check_round_trip(const Sample& sample, const SaveOptions& options = steady_options());

}  // namespace thalia::test
