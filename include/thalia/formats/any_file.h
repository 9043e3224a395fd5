// The tensors of a file of any format behind one interface.
//
//   const thalia::AnyFile file = thalia::open_any("model.gguf");
//   for (const thalia::AnyTensor& tensor : file.tensors()) std::puts(tensor.name.c_str());
//   const thalia::Tensor embedding = file.read("token_embd.weight");
//
// docs/use/formats.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/detail/held.h"
#include "thalia/formats/any_tensor.h"
#include "thalia/formats/file_format.h"
#include "thalia/formats/param_source.h"
#include "thalia/options.h"
#include "thalia/tensor_layout.h"
#include "thalia/tensor_value.h"
#include "thalia/verify.h"

namespace thalia {

/// An open file. A cheap handle; immutable; any number of threads. The tensors of a .thalia file
/// have the names that they get in formats without regions.
class AnyFile {
 public:
  FileFormat format() const noexcept;
  std::string_view version() const noexcept;  ///< of the format; empty: the file does not say
  const std::vector<AnyTensor>& tensors() const noexcept;  ///< in the order of the file
  std::optional<std::size_t> find(std::string_view name) const;
  /// A JSON object. Of most formats {"format":NAME,NAME:{…}}: what a .thalia file made of this one
  /// holds, with all that it takes to write the file again.
  std::string_view metadata_json() const noexcept;
  std::optional<std::uint64_t> training_steps() const noexcept;
  std::uint64_t file_bytes() const noexcept;  ///< of all files, if there are several
  /// What the file holds besides tensors and metadata, a sentence each: conversions lose it.
  const std::vector<std::string>& losses() const noexcept;

  /// What the file lacks if it is one of several that a model is in, and was not opened by their
  /// index: "the tensors of 2 other files: …"; nullopt of a whole one.
  std::optional<std::string> lacks() const;

  /// The size of what read(i) returns.
  std::uint64_t logical_bytes(std::size_t i) const noexcept;

  /// In the mapping where it lies there as it is, and holds the file open then; else decoded.
  /// @throws FormatError, IntegrityError, IoError that name the file and the tensor; UsageError
  /// (not_found).
  Tensor read(std::size_t i) const;
  Tensor read(std::string_view name) const;
  /// Says that `part` of the bytes of a tensor, which read() gave, is read next: where it lies in
  /// the mapping, and such parts follow each other, the system reads ahead of them.
  void read_ahead(const Tensor& tensor, ByteSpan part) const noexcept;
  /// Everything of the tensor that can be wrong, its checksum too where the file has one
  /// (AnyTensor::checksum). @throws as read().
  void check(std::size_t i) const;

 private:
  friend AnyFile open_any(const std::filesystem::path&, const OpenOptions&,
                          std::optional<FileFormat> format);
  friend ParamSource stream_params(const AnyFile&, const ParamSourceOptions&);
  struct Impl;
  detail::Shared<const Impl> impl_;
};

/// @param format nullopt: detected. @throws IoError, FormatError, IntegrityError; UnsupportedError
/// for a file that is known to be something else, or that needs what the library lacks.
AnyFile open_any(const std::filesystem::path& path, const OpenOptions& options = {},
                 std::optional<FileFormat> format = std::nullopt);

/// The file, or the one that opens the model in a folder, and all others that its tensors are read
/// from: those of a model, with external data, the bases of a delta. @throws as open_any(), and
/// where one of these cannot be found.
std::vector<std::filesystem::path> files_read(const std::filesystem::path& path,
                                              const OpenOptions& options = {},
                                              std::optional<FileFormat> format = std::nullopt);

/// AnyFile::lacks() of a file. It is opened only where its format has a place to say so; else its
/// name tells: model-00001-of-00003.thalia. @throws as open_any().
std::optional<std::string> lacks_of_file(const std::filesystem::path& path, FileFormat format,
                                         const OpenOptions& options = {});

/// Everything that can be wrong with a file of any format; that it is a part of a model is a
/// finding, too. Damage is reported; what says nothing about the file is thrown.
/// @param verify its input is that of a .thalia file; other formats are read as `options` say.
/// @param resolve of a .thalia delta also all that it is based on.
/// @throws IoError, UnsupportedError, CancelledError; FormatError (limit_exceeded).
VerifyReport verify_any(const std::filesystem::path& path, const VerifyOptions& verify = {},
                        const OpenOptions& options = {},
                        std::optional<FileFormat> format = std::nullopt, bool resolve = true);

/// Its tensors one at a time, of which a part stays in memory; the file stays open as long. Reads
/// nothing yet. @throws UsageError (bad_argument) for a share outside of 0 to 1.
ParamSource stream_params(const AnyFile& file, const ParamSourceOptions& options = {});

}  // namespace thalia
