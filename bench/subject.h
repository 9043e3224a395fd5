// What a benchmark program measures; each <subject>_benchmark.cc defines it.
#pragma once

#include "paired.h"
#include "settings.h"

namespace thalia::bench {

/// Whether add_subject registers Google Benchmarks.
extern const bool kMeasuresAlone;

/// Registers Google Benchmarks for what is measured alone, and adds the paired comparisons.
void add_subject(const Settings& settings, PairedSuite& suite);

}  // namespace thalia::bench
