// What a user finds in a run after a crash, and whether that may be. A run is described by items, a
// line each: each checkpoint, gate and version of the pool, what leads to them, and what has begun.
// Nothing in a description depends on the time.
//
// A crash in the middle of a save leaves many states that differ in some of these items. So a
// description is not compared as a whole: each item has to be as it was promised, or as something
// makes it that was attempted since. docs/contribute/durability.md, "The store".
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "thalia/store.h"

namespace thalia::crash {

/// The items, by reading all: whatever is listed has to load with its digest checked. Empty if
/// there is no run. @throws thalia::Error for what is listed and cannot be loaded.
std::string description_of_run(const std::filesystem::path& folder);

/// What is wrong with a description, as a sentence; empty if nothing is. @param allowed
/// descriptions: the first is of what was promised, the others of what was attempted since.
std::string fault_of_run(const std::string& observed, std::span<const std::string> allowed);

/// The next process opens the run for saving: nothing is left of what a crash cut short, nothing is
/// lost by that, and the next save is the latest. @throws std::logic_error where not.
void go_on_with_run(const std::filesystem::path& folder);

/// The runs that the operations make. A step is a state of its own, most of which is as in others;
/// with `all_changes` nothing is.
RunConfig crash_config();
RunConfig crash_config_of_bytes();
RunConfig crash_config_with_pool();
BrainState crash_state(std::uint64_t step, bool all_changes = false);
std::string crash_bytes(std::uint64_t step);

}  // namespace thalia::crash
