// What gates/NAME.meta.json tells: what a gate was copied from, and while it takes the place of
// another one, what was there before. docs/format/store.md, "Gates".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/run/run_folder.h"

namespace thalia::store {

struct GateMeta {
  GateEntry gate;
  /// Set from before the gate's file gets its name until its digest is beside it. Its sha256 is
  /// empty if there was none, and its phase if nothing was known of it.
  std::optional<GateEntry> before{};

  /// Either is the digest of the file that is there.
  std::vector<std::string> digests() const;
};

/// nullopt if there is none, or nothing that can be read.
std::optional<GateMeta> read_gate_meta(const RunFolder& run, const std::string& gate);
std::string gate_text(const GateMeta& meta);

}  // namespace thalia::store
