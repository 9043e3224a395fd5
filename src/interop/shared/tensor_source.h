// The tensors of an open file, whichever format it has: what conversions and the commands that look
// read through. Each room of a format has one source, and none knows another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interop/shared/piece_sink.h"
#include "thalia/options.h"
#include "thalia/tensor_layout.h"
#include "thalia/tensor_value.h"

namespace thalia::interop {

struct SourceTensor {
  std::string name;       ///< different from all others of the file
  TensorLayout layout{};  ///< of what read() gives
  /// The format's own name of the element type, where the layout does not tell it: "Q4_K".
  std::string type{};
  /// Where its stored bytes lie in the file, and how many they are; nullopt where they do not lie
  /// together.
  std::optional<std::uint64_t> offset{};
  std::optional<std::uint64_t> stored_bytes{};
};

struct SourceFacts {
  std::string version{};                ///< of the format, as the file says it; empty: it does not
  std::vector<SourceTensor> tensors{};  ///< in the order of the file
  /// A JSON object: what a .thalia file made of this one holds as metadata. Of most formats
  /// {"format":NAME,NAME:{…}}, with all that the format's sink needs to write the file again.
  std::string metadata = "{}";
  std::optional<std::uint64_t> training_steps{};
  std::uint64_t file_bytes = 0;  ///< of all files, where there are several
  /// What the file holds beside its tensors and metadata, a sentence each: it is lost in whatever
  /// the file is converted to.
  std::vector<std::string> losses{};
};

struct SourceOptions {
  ReadOptions read{};
  /// Folders in which a base is looked for when it is not where its delta says.
  std::vector<std::filesystem::path> search{};
  BasePolicy bases{};  ///< which files a file may name
  /// Elements in place of the codes of formats with types of their own.
  bool dequantize = false;
  /// Takes what the current original refuses as too old.
  bool legacy = false;
  std::uint64_t max_safetensors_header_bytes = 100'000'000;
};

/// Immutable; any number of threads.
class TensorSource {
 public:
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;
  virtual ~TensorSource() = default;

  const SourceFacts& facts() const noexcept { return facts_; }

  /// In the mapping where it lies there as it is, and holds the file open then; else decoded.
  /// @throws FormatError, IntegrityError, IoError that name the file and the tensor.
  virtual Tensor read(std::size_t i) const = 0;
  /// Hands on the bytes of read(i) in order; in pieces where a format need not decode all at once.
  virtual void visit(std::size_t i, const PieceSink& sink) const { sink(read(i).bytes()); }
  /// Everything of the tensor that can be wrong, checksums too. @throws as read().
  virtual void check(std::size_t i) const { static_cast<void>(read(i)); }

 protected:
  TensorSource() = default;
  SourceFacts facts_;
};

/// How a room opens a file. @throws IoError, FormatError, IntegrityError, UnsupportedError.
using OpenSource = std::shared_ptr<const TensorSource> (*)(const std::filesystem::path& path,
                                                           const SourceOptions& options);

}  // namespace thalia::interop
