// The states that are tried: those that are most likely to show a fault, and random ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "crash/disk.h"

namespace thalia::crash {

/// Gets a state, and the place in the log of its crash. Returns true if it had not met it.
using Visit = std::function<bool(const Tree& tree, std::size_t place)>;

/// Hands `wanted` states that are new to `visit`, or as many as there are to be found.
/// For each crash: nothing of what is pending is there, or all, with each beginning of the journal;
/// each name and page alone lost, and alone there; pages torn between sectors, and sectors between
/// bytes; longer files with zeros, noise and bytes of an older file. Then random choices. All of
/// it follows from `seed`.
/// @return how many were new.
std::size_t visit_states(const CallLog& log, Mode mode, std::size_t wanted, std::uint64_t seed,
                         const Visit& visit);

}  // namespace thalia::crash
