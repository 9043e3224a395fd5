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
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/formats/file_facts.h"
#include "thalia/formats/param_source.h"
#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/state/delta.h"
#include "thalia/state/tensor_value.h"
#include "thalia/types.h"
#include "thalia/verify.h"

namespace thalia {

/// An open file. A cheap handle; immutable; any number of threads. The tensors of a .thalia file
/// have the names that they get in formats without regions, unless OpenOptions::as_stored is set.
class AnyFile {
 public:
  /// For a folder: the path of the file that opens the model in it.
  const std::string& path() const noexcept;
  FileFormat format() const noexcept;
  /// What the file says of itself. If a .thalia file was opened as it is stored, the first call
  /// reads its tables. @throws FormatError, IoError.
  const FileFacts& facts() const;
  std::string_view version() const;                     ///< as FileFacts has it
  std::string_view metadata_json() const;               ///< the same
  std::optional<std::uint64_t> training_steps() const;  ///< the same
  std::uint64_t file_bytes() const;                     ///< the same
  const std::vector<std::string>& losses() const;       ///< the same
  const std::vector<AnyTensor>& tensors() const;        ///< in the order of the file

  std::size_t tensor_count() const;
  /// All that the tables say of tensor i, as it is stored: its layout too, which is not that of
  /// what read() gives of one that is quantized, or a part of a delta. @throws UsageError
  /// (not_found); FormatError.
  AnyTensor stored(std::size_t i) const;
  /// Finds a tensor by its name. If a file with regions was opened as it is stored, a name is
  /// REGION/NAME, NAME if only one region has it, or the path in a state, with dots or slashes,
  /// with "regions." or without it. @throws UsageError (bad_argument) where several regions have
  /// the name; FormatError.
  std::optional<std::size_t> find(std::string_view name) const;
  /// @throws as find(); UsageError (not_found), which says what may have been meant.
  std::size_t at(std::string_view name) const;

  /// Whether the file is one of regions, and was opened as it is stored.
  bool has_regions() const noexcept;
  /// In the order of the file. @throws UsageError (not_found); FormatError.
  std::size_t region_count() const;
  std::string_view region_name(std::size_t i) const;
  RegionFacts region(std::size_t i) const;
  bool has_region(std::string_view name) const;
  std::vector<ConnectionFacts> connections() const;
  /// The state of a .thalia file or a delta that was opened as it is stored, read as the options
  /// say; nullopt of any other file. @throws as ChainReader::open().
  std::optional<ChainReader> state(const ChainOptions& options) const;
  /// The file itself first, then all that it is based on, the full one last, as headers tell: no
  /// payload is read. Those of one part of a model after those of another. @throws as files().
  std::vector<LinkFacts> links() const;

  /// What the file lacks if it is one of several that a model is in, and was not opened by their
  /// index: "the tensors of 2 other files: …"; nullopt of a whole one.
  std::optional<std::string> lacks() const;

  /// The files that are read besides the one at path(): those of a model, those with
  /// external data, those of a chain. @throws as read(), if they have to be opened to be known.
  std::vector<std::filesystem::path> files() const;

  /// The size of what read(i) returns.
  std::uint64_t logical_bytes(std::size_t i) const;

  /// In the mapping where it lies there as it is, and holds the file open then; else decoded.
  /// @throws FormatError, IntegrityError, IoError that name the file and the tensor; UsageError
  /// (not_found).
  Tensor read(std::size_t i) const;
  Tensor read(std::string_view name) const;
  /// To be read in parts; numbers in place of the codes of types of the format's own, if they
  /// are known. @throws as read().
  TensorElements elements(std::size_t i) const;
  /// Says that `part` of the bytes of a tensor, which read() gave, is read next: where it lies in
  /// the mapping, and such parts follow each other, the system reads ahead of them.
  void read_ahead(const Tensor& tensor, ByteSpan part) const noexcept;
  /// Everything of the tensor that can be wrong, its checksum too where the file has one
  /// (AnyTensor::checksum). @throws as read().
  void check(std::size_t i) const;

 private:
  friend struct detail::Inside;
  friend ParamSource stream_params(const AnyFile&, const ParamSourceOptions&);
  struct Impl;
  explicit AnyFile(std::unique_ptr<const Impl> impl);
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

/// Everything that can be wrong with a file of any format; that it is a part of a model is a
/// finding, too. Damage is reported; what says nothing about the file is thrown.
/// @param verify its input is that of a .thalia file; other formats are read as `options` say.
/// @param resolve of a .thalia delta also all that it is based on.
/// @param on_format is told what the file is before anything of it is verified.
/// @throws IoError, UnsupportedError, CancelledError; FormatError (limit_exceeded).
VerifyReport verify_any(const std::filesystem::path& path, const VerifyOptions& verify = {},
                        const OpenOptions& options = {},
                        std::optional<FileFormat> format = std::nullopt, bool resolve = true,
                        const std::function<void(FileFormat)>& on_format = {});

/// Its tensors one at a time, of which a part stays in memory; the file stays open as long. Reads
/// nothing yet. @throws UsageError (bad_argument) for a share outside of 0 to 1.
ParamSource stream_params(const AnyFile& file, const ParamSourceOptions& options = {});

// A checkpoint in several .thalia files, for those who take one full file: a delta with its bases,
// or a model in parts that an index names.

/// A full .thalia file as it is; else the state of a delta, or of the parts that an index or its
/// folder names, as a file without a name, which nobody else can open, and which is gone with its
/// last reader, however the process ends. Quantized tensors have elements in such a file. Errors
/// about it name the delta or the index.
class ResolvedFile {
 public:
  /// @param folder on whose file system the state is kept meanwhile; empty: the temporary folder's.
  /// In memory if that has no files without names. @throws as state_source().
  ResolvedFile(const std::filesystem::path& path, const std::filesystem::path& folder,
               const ChainOptions& options = {});

  /// Valid after this is gone, as a copy of it.
  const Reader& reader() const noexcept { return reader_; }
  bool is_copy() const noexcept { return input_bytes_ != 0; }
  /// The bytes of all files that were read; 0 if this is not a copy.
  std::uint64_t input_bytes() const noexcept { return input_bytes_; }

 private:
  std::uint64_t input_bytes_ = 0;  ///< before the reader, whose opening sets it
  Reader reader_;
};

/// Whether the path is an index of .thalia files, or a folder that is opened by one.
/// @throws IoError.
bool is_in_parts(const std::filesystem::path& path, Access access = Access::mapped);

/// The state of a .thalia file, a delta, or the parts that an index or its folder names, all of
/// which it keeps open. Parts are joined: regions of one name become one, metadata are joined as by
/// merge(), and training steps are the greatest. @throws as ChainReader::open(); FormatError
/// (inconsistent) where index and parts do not have the same tensors; UsageError (duplicate) where
/// two parts have other texts or sizes for a region, or other metadata.
StateSource state_source(const std::filesystem::path& path, const ChainOptions& options = {});

/// write_delta() between two paths. Its base is one file, which may be a delta. @param input as
/// state_source() takes it.
/// @throws as both; UsageError (bad_argument) for a base in parts, or a target that is one of the
/// files that are read, other than `input` itself.
DeltaResult write_delta(const std::filesystem::path& base, const std::filesystem::path& input,
                        const std::filesystem::path& target, const ChainOptions& chain = {},
                        const DeltaOptions& options = {});

}  // namespace thalia
