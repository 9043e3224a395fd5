// What follows once a checkpoint's file and its digest are in place. docs/format/store.md,
// "Saving".
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "store/run/journal.h"
#include "store/save/session.h"

namespace thalia::store {

struct Published {
  CheckpointEntry entry;
  bool is_best = false;
};

/// Journal, latest and best. @param saved of a file that was written just now. @param on_visible
/// called once latest leads to it. @throws IoError: the checkpoint is saved all the same.
Published publish(const SaveSession& session, std::string_view phase, const JournalLine& saved,
                  const std::function<void()>& on_visible);

/// The run goes on from there. @throws IoError.
void go_on_from(const SaveSession& session, std::string_view phase, const std::string& file);

/// Repairs a phase whose last save a crash cut short: removes what that save left, and does what it
/// did not get to, except retention. @param may_sweep no other process can be saving. @throws
/// IoError.
void repair(const SaveSession& session, std::string_view phase, bool may_sweep);

/// The best of the checkpoints that are there, by what the journal knows of them. @throws IoError.
void choose_best(const SaveSession& session, std::string_view phase);

/// The phase has no best: the next metric is. @throws IoError.
void forget_best(const SaveSession& session, std::string_view phase);

}  // namespace thalia::store
