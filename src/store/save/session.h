// What everything that changes a run shares: the folder, how durable it is to be, whom to tell.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "store/run/run_folder.h"
#include "thalia/options.h"
#include "thalia/store/writer.h"

namespace thalia::store {

/// Outlives what it is given to.
struct SaveSession {
  const RunFolder& run;
  const RunWriterOptions& options;

  OutputOptions output(bool replace = true) const {
    return run.files().output(options.durability, replace);
  }
  const RunFiles& files() const { return run.files(); }
  bool syncs_folders() const { return options.durability == Durability::full; }
  void step(SaveStep step) const {
    if (options.on_step) options.on_step(step);
  }
  void warn(const std::string& sentence) const {
    if (options.on_warning) options.on_warning(sentence);
  }
};

}  // namespace thalia::store
