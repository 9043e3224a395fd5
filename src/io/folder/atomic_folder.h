// A folder of files that appears at its path whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "io/folder/folder.h"
#include "io/system/process.h"
#include "thalia/options.h"
#include "thalia/storage.h"

namespace thalia::io {

/// Made beside the target under a temporary name, until commit(). Destroyed before, it is
/// removed. A folder that is at the target already is replaced only if it is empty, whatever the
/// options say: what else is in it is not known here. Externally synchronised. A forked child,
/// which shares it with its parent, can neither write to it nor remove it.
class AtomicFolder {
 public:
  /// @throws IoError; UsageError: (exists) if an empty folder is at the target, and is not to be
  /// replaced; (bad_argument) if one with something in it is, or something else.
  AtomicFolder(const std::filesystem::path& path, const OutputOptions& output,
               const std::stop_token& cancel);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  /// A new file below the folder, whose own name is the last one, with all that `produce` hands on;
  /// folders are made. All are names as is_inner_name() takes them. @throws IoError;
  /// CancelledError; what `produce` throws.
  void write_file(std::span<const std::string> names, const ByteProducer& produce);
  std::uint64_t bytes() const noexcept { return bytes_; }  ///< of all files

  /// @throws IoError; CancelledError; UsageError, as above, where something appeared at the target.
  void commit();

 private:
  void discard() noexcept;
  void make_inner_folder(const std::string& name);

  OwnProcess process_;
  std::filesystem::path target_;
  OutputOptions output_;
  std::stop_token cancel_;
  Folder parent_;
  std::string temporary_;           ///< in the parent; empty once it is in place
  std::set<std::string> made_;      ///< folders below the temporary one, as paths from it
  std::vector<std::string> files_;  ///< the same of files
  std::uint64_t bytes_ = 0;
};

}  // namespace thalia::io
