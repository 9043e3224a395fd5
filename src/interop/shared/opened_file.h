// The tensors of an open file, whichever format it has: what conversions and the commands that look
// read through. Each room of a format has one source, and none knows another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/shared/part_name.h"
#include "interop/shared/piece_sink.h"
#include "thalia/formats/any_tensor.h"
#include "thalia/options.h"
#include "thalia/tensor_value.h"

namespace thalia::interop {

/// The key of the text in which a file carries metadata of another format. docs/use/formats.md,
/// "Metadata".
inline constexpr std::string_view kCarriedMetadata = "thalia.metadata";

/// As AnyFile tells them.
struct OpenedFacts {
  std::string version{};
  std::vector<AnyTensor> tensors{};
  std::string metadata = "{}";
  /// Of formats with texts for metadata: the one under kCarriedMetadata.
  std::optional<std::string> carried{};
  std::optional<std::uint64_t> training_steps{};
  std::uint64_t file_bytes = 0;
  std::vector<std::string> losses{};
  /// Those of the losses that are none where a tensor goes to its place(), in a file with regions.
  std::vector<std::string> place_losses{};
};

/// Where a tensor stands in a file with regions, under the name that it has there.
struct RegionPlace {
  std::string region;
  std::string name;
  Role role;
};

/// Immutable; any number of threads.
class OpenedFile {
 public:
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;
  virtual ~OpenedFile() = default;

  const OpenedFacts& facts() const noexcept { return facts_; }
  /// The files that are read beside the one at the path: of a model, with external data, of a
  /// chain. @throws as read() where they have to be opened to be known.
  virtual std::vector<std::filesystem::path> files() const { return {}; }

  /// nullopt where the file itself does not say that it is one of several.
  virtual std::optional<ModelPart> part() const { return std::nullopt; }
  /// Of tensor i; nullopt in formats without regions.
  virtual std::optional<RegionPlace> place(std::size_t /*i*/) const { return std::nullopt; }

  /// In the mapping where it lies there as it is, and holds the file open then; else decoded.
  /// @throws FormatError, IntegrityError, IoError that name the file and the tensor.
  virtual Tensor read(std::size_t i) const = 0;
  /// Whether read(i) takes no memory of its own.
  virtual bool is_mapped(std::size_t i) const { return facts_.tensors[i].in_place; }
  /// Hands on the bytes of read(i) in order; of a dense tensor in pieces of whole elements where a
  /// format need not decode all at once.
  virtual void visit(std::size_t i, const PieceSink& sink) const { sink(read(i).bytes()); }
  /// Everything of the tensor that can be wrong, checksums too. @throws as read().
  virtual void check(std::size_t i) const { static_cast<void>(read(i)); }

 protected:
  OpenedFile() = default;
  OpenedFacts facts_;
};

/// How a room opens a file. @throws IoError, FormatError, IntegrityError, UnsupportedError.
using OpenFormat = std::shared_ptr<const OpenedFile> (*)(const std::filesystem::path& path,
                                                         const OpenOptions& options);

}  // namespace thalia::interop
