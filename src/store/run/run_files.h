// The files of a run by their paths. A run's folder is untrusted, and what lies in it may be
// links: so all that the store opens, writes, makes and removes below that folder goes through
// here, where no link is followed. docs/contribute/security.md, "Links".
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "io/file/file_bytes.h"
#include "io/folder/folder.h"
#include "thalia/options.h"
#include "thalia/state/delta.h"

namespace thalia::store {

/// No text that a run keeps beside its checkpoints is longer, but for the journal.
inline constexpr std::uint64_t kMaxTextBytes = 4 << 20;

/// A text of a folder that is open; nullopt if there is no such file. @throws IoError;
/// FormatError (limit_exceeded) for one of more than `limit` bytes; UsageError (bad_argument) if
/// it is a link, or no regular file.
std::optional<std::string> read_text(const io::Folder& folder, const std::string& name,
                                     std::uint64_t limit = kMaxTextBytes);

/// A .thalia file that is open. @throws as Reader::open().
Reader read_over(std::shared_ptr<const io::FileBytes> file, const ReadOptions& read = {});

/// Immutable. Paths are of the run's folder, or below it. Every call may throw IoError, and
/// UsageError (bad_argument) if a link is in the way.
class RunFiles {
 public:
  /// @param folder of the run. Links that lead to it are followed: a caller has named it.
  /// @param access of files that are opened without ReadOptions.
  explicit RunFiles(std::filesystem::path folder, Access access = Access::mapped)
      : folder_(std::move(folder)), access_(access) {}

  io::Folder folder(const std::filesystem::path& path) const { return io::Folder(path, folder_); }
  /// nullopt if there is none.
  std::optional<io::Folder> find_folder(const std::filesystem::path& path) const {
    return io::Folder::find(path, folder_);
  }
  void make_folders(const std::filesystem::path& path, Durability durability) const;
  /// The path has its name on the disk afterwards, unless this process may not read the folder
  /// above.
  void sync_name(const std::filesystem::path& path) const;

  bool has_file(const std::filesystem::path& path) const;
  /// The facts of the name itself, whatever it is; nullopt if it does not exist.
  std::optional<io::EntryFacts> facts(const std::filesystem::path& path) const;
  /// @return false if there was none.
  bool remove(const std::filesystem::path& path) const;

  /// How files are opened for the store's own needs.
  ReadOptions reading(const std::stop_token& cancel = {}) const {
    return {.input = {.access = access_}, .work = {.cancel = cancel}};
  }
  std::shared_ptr<const io::FileBytes> open(const std::filesystem::path& path) const {
    return open(path, access_);
  }
  std::shared_ptr<const io::FileBytes> open(const std::filesystem::path& path, Access access) const;
  /// A .thalia file, with the files of the run that it is based on. @throws also as
  /// ChainReader::open().
  ChainReader open_chain(const std::filesystem::path& path,
                         const std::stop_token& cancel = {}) const;
  /// The same of a file that is open.
  ChainReader open_chain(std::shared_ptr<const io::FileBytes> file, const ReadOptions& read) const;

  /// As read_text() of its folder; nullopt also if that is not there.
  std::optional<std::string> read_text(const std::filesystem::path& path,
                                       std::uint64_t limit = kMaxTextBytes) const;
  /// In place of the one that is there, whole.
  void write_text(const std::filesystem::path& path, std::string_view text,
                  Durability durability) const;
  void append_lines(const std::filesystem::path& path, std::string_view lines,
                    Durability durability) const;

  /// The options of every file that is written into the run.
  OutputOptions output(Durability durability, bool replace = true) const {
    return {.durability = durability, .replace = replace, .within = folder_};
  }

 private:
  std::filesystem::path folder_;
  Access access_;
};

}  // namespace thalia::store
