// The records of a .pt file: a zip archive with all names below one folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pickle/value.h"
#include "formats/zip/directory.h"
#include "io/memory/allocation_limit.h"
#include "io/system/process.h"
#include "thalia/options.h"
#include "thalia/storage.h"

namespace thalia::formats::pt {

/// Immutable; any number of threads.
class PtArchive {
 public:
  /// @throws FormatError; UnsupportedError for files from before the zip format, with advice, and
  /// for archives of a later version.
  PtArchive(StoredBytes file, const ReadOptions& options);

  const std::string& folder() const noexcept { return folder_; }    ///< without the slash
  const std::string& version() const noexcept { return version_; }  ///< "3"
  bool big_endian() const noexcept { return big_endian_; }
  /// A program of TorchScript, whose module data.pkl is.
  bool is_script() const noexcept { return script_; }
  std::uint64_t file_bytes() const noexcept { return file_.bytes.size(); }
  const ZipDirectory& zip() const noexcept { return zip_; }

  /// nullptr if there is none.
  const ZipMember* find(std::string_view record) const;
  /// The text of a small record; empty if there is none.
  std::string text_of(std::string_view record) const;
  /// The whole of a record: in the file where it lies there as it is. Unless the options say
  /// Verification::off, its checksum is compared first. @throws as ZipDirectory::read().
  StoredBytes bytes_of(const ZipMember& member, io::MemoryBudget& budget) const;
  /// Once inflated, the record stays: several tensors lie in it. Before it is shared by threads.
  void keep(const ZipMember& member, io::MemoryBudget& budget);
  /// A record whose checksum is compared.
  StoredBytes checked(const ZipMember& member, io::MemoryBudget& budget) const;
  /// Compares a record's checksum, once. @throws IntegrityError, CompressionError.
  void check_crc(const ZipMember& member) const;
  /// The name of a record without the folder.
  std::string_view record_name(const ZipMember& member) const noexcept {
    return std::string_view(member.name).substr(folder_.size() + 1);
  }

 private:
  StoredBytes file_;
  ReadLimits limits_;
  bool verifies_;
  ZipDirectory zip_;
  std::string folder_;
  std::string version_;
  bool big_endian_ = false;
  bool script_ = false;
  // Which records were checked; and the inflated ones, so that tensors of one storage share them.
  mutable io::ThreadLock lock_;
  mutable std::vector<bool> sound_;
  mutable std::vector<std::weak_ptr<const std::vector<std::byte>>> inflated_;
  mutable std::vector<std::shared_ptr<const std::vector<std::byte>>> held_;
  std::vector<bool> keeps_;
};

/// Storages of a graph in records below `prefix` ("data/"), each as long as the pickle says.
/// @return for each its member. @throws FormatError.
std::vector<const ZipMember*> place_storages(const PtArchive& archive, const Graph& graph,
                                             std::string_view prefix);

}  // namespace thalia::formats::pt
