// Waiting until something happens in folders, for as long as somebody has patience.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>
#include <string_view>

#include "io/system/unique_fd.h"

namespace thalia::io {

enum class Woken {
  changed,  ///< a name came into a folder, or a file of it was written
  called,   ///< by wake()
  late,     ///< time is over
};

/// Externally synchronised, but for wake().
class FolderWatch {
 public:
  /// Whether a name that came, or a file of it that was written, is worth a look.
  using Counts = std::function<bool(std::string_view name)>;

  /// @param polling the system is not asked to report changes. @param counts without it all names
  /// count, but for those of files that are not done. @throws IoError.
  explicit FolderWatch(bool polling, Counts counts = {});

  /// One that is watched already, or not there yet, is left alone. Where the system reports none of
  /// its changes, is_polling() says so from now on.
  void add(const std::filesystem::path& folder);
  bool is_polling() const noexcept { return !reports_; }

  /// @throws CancelledError once `stop` is requested; IoError.
  Woken wait(std::chrono::milliseconds patience, const std::stop_token& stop);
  /// From any thread. Counts for the wait that is under way, or else for the next one.
  void wake() noexcept;

 private:
  bool take_reports();
  bool take_call();

  const Counts counts_;
  UniqueFd calls_;
  UniqueFd reports_;
  std::map<int, std::filesystem::path> folders_;  ///< by the system's numbers
};

}  // namespace thalia::io
