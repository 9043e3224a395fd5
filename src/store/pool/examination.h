// What is wrong with a run, and how a finding is repaired. docs/format/store.md, "Repair".
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/folder/folder.h"
#include "store/save/session.h"
#include "thalia/store/repair.h"

namespace thalia::store {

/// A file that is held against the digest beside it, and against its own checks.
struct FileCheck {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  bool is_thalia = false;
  bool is_gate = false;    ///< it has to have a digest
  bool is_counted = true;  ///< as a checkpoint
};

/// Externally synchronised.
class Examination {
 public:
  /// @param session of whom holds the run's lock; nullptr: nothing is changed. @param may_sweep no
  /// other process can be saving.
  Examination(const RunFolder& run, const StoreCheckOptions& options, const SaveSession* session,
              bool may_sweep)
      : run_(run), options_(options), session_(session), may_sweep_(may_sweep) {}

  const RunFolder& run() const noexcept { return run_; }
  const StoreCheckOptions& options() const noexcept { return options_; }

  void find(Severity severity, std::string kind, const std::filesystem::path& path,
            std::string message);
  /// The same, which repair(session) puts right, where something is to be changed.
  void find(Severity severity, std::string kind, const std::filesystem::path& path,
            std::string message, const std::function<void(const SaveSession&)>& repair);
  /// Temporary files of processes that do not hold the lock.
  void find_temporaries(const std::filesystem::path& folder);
  /// A name that is of no use to anybody, which a repair removes.
  void find_useless(std::string kind, const std::filesystem::path& path, std::string message);

  /// Reads the file at the end, with the others; if the check is quick, its digest's text alone
  /// now.
  void check(FileCheck file);
  StoreReport finish();

 private:
  void check_quickly(const FileCheck& file);
  void check_whole(const FileCheck& file);
  void check_bases(const std::filesystem::path& path);

  const RunFolder& run_;
  const StoreCheckOptions& options_;
  const SaveSession* const session_;
  const bool may_sweep_;
  StoreReport report_;
  std::vector<FileCheck> files_;
};

/// A phase: its checkpoints, its links, its journal, and what a transition left for it.
void examine_phase(Examination& examination, const PhaseConfig& phase);
void examine_gates(Examination& examination);
/// Does nothing for a run without a pool.
void examine_pool(Examination& examination);

}  // namespace thalia::store
