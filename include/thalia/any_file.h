// The tensors of a file of any format behind one interface.
//
//   const thalia::AnyFile file = thalia::open_any("model.gguf");
//   for (const thalia::AnyTensor& tensor : file.tensors()) std::puts(tensor.name.c_str());
//   const thalia::Tensor embedding = file.read("token_embd.weight");
//
// docs/formats.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/file_format.h"
#include "thalia/options.h"
#include "thalia/tensor_layout.h"
#include "thalia/tensor_value.h"

namespace thalia {

namespace interop {
class TensorSource;
}

/// What a file's tables say of a tensor.
struct AnyTensor {
  std::string name;       ///< different from all others of the file
  TensorLayout layout{};  ///< of what read() gives
  /// The format's own name of the element type, where the layout does not tell it: "Q4_K".
  std::string type{};
  /// Where its stored bytes lie in the file, and how many they are; nullopt where they do not lie
  /// together.
  std::optional<std::uint64_t> offset{};
  std::optional<std::uint64_t> stored_bytes{};
  /// The bytes lie in the file as read() gives them: it copies nothing.
  bool in_place = false;
};

struct OpenOptions {
  ReadOptions read{};
  /// Folders in which a base is looked for when it is not where its delta says.
  std::vector<std::filesystem::path> search{};
  BasePolicy bases{};  ///< which files a file may name
  /// Elements in place of the codes of formats with types of their own.
  bool dequantize = false;
  /// Takes what the current original program refuses as too old.
  bool legacy = false;
  /// Bytes that a safetensors header may have; the reference refuses more than 100 MB.
  std::uint64_t max_safetensors_header_bytes = 100'000'000;
};

/// An open file. A cheap handle; immutable; any number of threads. Of a .thalia file the tensors
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
  std::uint64_t file_bytes() const noexcept;  ///< of all files, where there are several
  /// What the file holds beside tensors and metadata, a sentence each: conversions lose it.
  const std::vector<std::string>& losses() const noexcept;

  /// Of what read(i) gives.
  std::uint64_t logical_bytes(std::size_t i) const noexcept;

  /// In the mapping where it lies there as it is, and holds the file open then; else decoded.
  /// @throws FormatError, IntegrityError, IoError that name the file and the tensor; UsageError
  /// (not_found).
  Tensor read(std::size_t i) const;
  Tensor read(std::string_view name) const;
  /// Everything of the tensor that can be wrong, checksums too. @throws as read().
  void check(std::size_t i) const;

 private:
  friend AnyFile open_any(const std::filesystem::path&, const OpenOptions&,
                          std::optional<FileFormat>);
  struct Impl;
  detail::Shared<const Impl> impl_;
};

/// @param format nullopt: detected. @throws IoError, FormatError, IntegrityError; UnsupportedError
/// for a file that is known to be something else, or that needs what the library lacks.
AnyFile open_any(const std::filesystem::path& path, const OpenOptions& options = {},
                 std::optional<FileFormat> format = std::nullopt);

}  // namespace thalia
