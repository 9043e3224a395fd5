// Files and their paths: what the file system says of a path, and a new file that appears whole or
// not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia {

// What the file system says of paths. The throwing functions of std::filesystem are not used
// outside of these: their errors are not those of thalia/error.h.

/// Bytes of a file. @throws IoError.
std::uint64_t file_bytes(const std::filesystem::path& path);
/// True for a regular file, or a link to one; false also if that is not known.
bool is_file(const std::filesystem::path& path) noexcept;
/// True where both paths lead to one file; false also where one of them leads nowhere.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) noexcept;
/// The absolute path, without links, "." and ".." as far as it exists. @throws IoError.
std::filesystem::path resolved_path(const std::filesystem::path& path);
/// The folder that holds, or would hold, a file of this path; "." of a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);
/// $TMPDIR, or the default in its place. @throws IoError if that is no folder.
std::filesystem::path temporary_folder();
/// @return false if there is none, or it cannot be removed.
bool remove_file(const std::filesystem::path& path) noexcept;

// A new file that appears at its path whole or not at all: how everything here writes one.
//
//   thalia::OutputFile out("report.json");
//   out.write(thalia::as_byte_span(text));
//   out.commit();

/// Written without a name, or under a temporary one next to the target, until commit(). Destroyed
/// before, as where an exception passes or a signal cancels the work, it leaves what was at the
/// path and nothing more. Small pieces are gathered. A call that fails ends it: commit() throws
/// then. Externally synchronised.
class OutputFile {
 public:
  /// A symbolic link is followed if the options say so. The new file has the mode of the one that
  /// it replaces, and where permitted its owner. @throws IoError; UsageError: (bad_argument) where
  /// the target exists and is no regular file, (exists) if it does and OutputOptions do not
  /// replace it.
  explicit OutputFile(const std::filesystem::path& path, const OutputOptions& output = {},
                      const std::stop_token& cancel = {});
  ~OutputFile();
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;

  /// Writes after what was written. @throws IoError; CancelledError once a stop is requested;
  /// UsageError (wrong_state) after commit() or a call that failed.
  void write(ByteSpan bytes);
  /// In place of what was written at `offset`, or of some of it. @throws as write().
  void overwrite(std::uint64_t offset, ByteSpan bytes);
  /// What was written. @throws as write().
  void read(std::uint64_t offset, MutableByteSpan out);
  std::uint64_t size() const;  ///< bytes written

  /// Syncs the file, puts it at the path, and syncs the folder, as far as the durability says.
  /// @return seconds spent in the syncs. @throws as write(): the old file is in place then, unless
  /// the error's path is the folder's: the new one is, but may be lost with the power.
  double commit();

  /// The target's path; for a link that was followed, the path that it leads to.
  const std::filesystem::path& path() const;

 private:
  struct Impl;
  detail::Owned<Impl> impl_;
};

}  // namespace thalia
