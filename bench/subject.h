// What a benchmark program measures: add_subject() of each <subject>_benchmark.cc, in a namespace
// <subject>_subject of its own.
#pragma once

namespace thalia::bench {

struct Settings;
class PairedSuite;

/// Registers Google Benchmarks for what is measured alone, and adds the paired comparisons.
/// @return whether it registered any.
using AddSubject = bool(const Settings& settings, PairedSuite& suite);

/// The whole program. @return its exit status.
int run_subject(int argc, char** argv, AddSubject& add);

}  // namespace thalia::bench
