// What is wrong with a run, and what of it can be put right. docs/format/store.md, "Repair".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "thalia/store/run.h"
#include "thalia/store/writer.h"
#include "thalia/verify.h"

namespace thalia {

struct StoreFinding {
  Severity severity = Severity::error;
  /// "temporary", "lone_digest", "missing_digest", "bad_digest", "damaged", "missing_base",
  /// "dangling_latest", "dangling_best", "left_behind", "gate", "pool", "lock", "file_system",
  /// "journal".
  std::string kind;
  std::filesystem::path path;
  std::string message;  ///< a sentence
  bool can_be_repaired = false;
  bool is_repaired = false;
};

struct StoreReport {
  std::vector<StoreFinding> findings;
  std::uint64_t checkpoints = 0;
  std::uint64_t bytes_checked = 0;
  bool ok() const noexcept;  ///< no finding of severity error that was not repaired
};

struct StoreCheckOptions {
  std::string phase{};  ///< this one alone; empty: all, with gates and pool
  bool quick = false;   ///< names, links and texts only: no checkpoint is read
  Work work{};
};

/// Reads every checkpoint, gate and version of the pool, and changes nothing: digests, files'
/// own checks, chains. @throws IoError where the run itself cannot be read.
StoreReport verify_run(const Run& run, const StoreCheckOptions& options = {});
/// The same, and repairs what can be repaired without a loss: temporary files and digests without a
/// file go, links that lead nowhere are led to what there is, digests that are missing are made for
/// files that their own checks vouch for.
StoreReport repair_run(RunWriter& run, const StoreCheckOptions& options = {});

}  // namespace thalia
