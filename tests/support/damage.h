// Files made wrong on purpose: edited in memory, sealed anew where a checksum would hide the edit,
// and walked by a reader that asks for everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/chunk.h"
#include "format/connectivity.h"
#include "format/directory.h"
#include "format/header.h"
#include "format/region.h"
#include "format/state.h"
#include "format/tensor.h"
#include "thalia/error.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::test {

/// Writes every CRC and checksum of a file anew, from its bytes: directory header, header, commit
/// record, leaves, closing checksum. They are put where `layout` says that they lie. Does nothing
/// if that is outside the file.
void reseal(std::span<char> file, const format::Header& layout);

/// The bytes of a whole file with its structures laid over them, found as the file was before any
/// edit.
class EditableFile {
 public:
  explicit EditableFile(std::string bytes);

  std::string& bytes() noexcept { return bytes_; }
  const format::Header& layout() const noexcept { return layout_; }

  template <typename T>
  T& at(std::uint64_t offset) {
    return *reinterpret_cast<T*>(&bytes_.at(offset));
  }
  format::Header& header() { return at<format::Header>(0); }
  format::Header& commit_record();
  format::DirectoryHeader& directory();
  format::DirectoryRegion& directory_region(std::uint32_t region);
  format::le32& region_order(std::uint32_t i);
  format::TensorEntry& tensor(std::uint32_t number);
  /// The first entry of that name.
  format::TensorEntry& tensor(std::string_view name);
  format::ChunkEntry& chunk(std::uint32_t number);
  char* names();
  format::RegionIndexEntry& region_index(std::uint32_t region);
  format::RegionHeader& region_header(std::uint32_t region);
  format::RegionExtension& region_extension(std::uint32_t region);
  format::HomeostaticHeader& homeostatic_header(std::uint32_t region);
  format::DynamicStateHeader& dynamic_state_header(std::uint32_t region);
  format::ConnectivityHeader& connectivity();
  format::ConnectionEntry& connection(std::uint32_t i);
  /// The stored bytes of a tensor, and the header before them.
  MutableByteSpan payload(std::string_view tensor_name);
  format::TensorHeader& payload_header(std::string_view tensor_name);

  /// CRC-32 and content hash of a raw tensor, in its entry and its payload header.
  void reseal_tensor(std::string_view name);
  void reseal() { test::reseal(bytes_, layout_); }

 private:
  std::uint64_t region_start(std::uint32_t region) const;

  std::string bytes_;
  format::Header layout_;
  format::DirectoryHeader directory_;
  std::string unedited_;
};

/// What a reader met that asked for everything in a file. Each part is asked for on its own, so one
/// that fails hides no other.
struct Walk {
  /// What is known of an error.
  struct Met {
    ErrorCode code;
    std::string section;
    std::string field;
  };
  std::vector<Met> met;
  unsigned errors = 0;
  unsigned unsupported = 0;  ///< of these, UnsupportedErrors
  std::string first_error;
};

/// Limits that keep a file that lies from asking for much memory.
ReadLimits tight_limits();

/// Opens the file and reads header, regions, texts, connections and tensors through every view.
/// Lets nothing pass but FormatError, IntegrityError and UnsupportedError, which it counts: a
/// UsageError would blame the caller for a damaged file.
/// @param streams also loads the tensors in a stream, whose threads cost more than all the rest.
Walk walk_file(const std::filesystem::path& path, Verification verification,
               Access access = Access::mapped, bool streams = true);

}  // namespace thalia::test
