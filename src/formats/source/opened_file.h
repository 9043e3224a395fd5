// An open file, whichever format it has: what conversions, AnyFile and the commands that look read
// through. Each room of a format has one, and none knows another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/source/part_name.h"
#include "formats/source/piece_sink.h"
#include "io/file/input_file.h"
#include "io/system/process.h"
#include "thalia/formats/file_facts.h"
#include "thalia/options.h"
#include "thalia/state/delta.h"
#include "thalia/state/tensor_value.h"

namespace thalia::formats {

/// The key of the text in which a file embeds metadata of another format. docs/use/formats.md,
/// "Metadata".
inline constexpr std::string_view kEmbeddedMetadata = "thalia.metadata";

/// As AnyFile tells them, and what conversions need beside that.
struct OpenedFacts : FileFacts {
  std::vector<AnyTensor> tensors{};  ///< empty of a file that tells them one at a time: stored()
  /// For formats with texts for metadata: the one under kEmbeddedMetadata.
  std::optional<std::string> embedded{};
  /// Those of the losses that do not occur if a tensor goes to its place(), in a file with regions.
  std::vector<std::string> place_losses{};
};

/// Where a tensor is in a file with regions, under the name that it has there.
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

  virtual const OpenedFacts& facts() const { return facts_; }
  /// The files that are read beside the one at the path: of a model, with external data, of a
  /// chain. @throws as read() if they have to be opened to be known.
  virtual std::vector<std::filesystem::path> files() const { return {}; }
  /// nullopt where the file itself does not say that it is one of several.
  virtual std::optional<ModelPart> part() const { return std::nullopt; }

  virtual std::size_t tensor_count() const { return facts_.tensors.size(); }
  /// What the tables say of tensor i as it is stored; all of AnyTensor.
  virtual AnyTensor stored(std::size_t i) const;
  /// @throws UsageError (bad_argument) where several regions have one of that name.
  virtual std::optional<std::size_t> find(std::string_view name) const;
  /// @throws UsageError (not_found) with the name that it may have been meant to be; as find().
  virtual std::size_t at(std::string_view name) const;
  /// The place of tensor i; nullopt in formats without regions.
  virtual std::optional<RegionPlace> place(std::size_t /*i*/) const { return std::nullopt; }

  // The regions, in the order of the file. For formats with regions that are opened as they are
  // stored.
  virtual bool has_regions() const { return false; }
  virtual std::size_t region_count() const { return 0; }
  virtual std::string_view region_name(std::size_t /*i*/) const { return {}; }
  virtual RegionFacts region(std::size_t /*i*/) const { return {}; }
  virtual bool has_region(std::string_view name) const;
  virtual std::vector<ConnectionFacts> connections() const { return {}; }

  /// The state that a file of regions is, read as the options say; nullopt of other formats.
  /// @throws as read() where a file that it is based on cannot be found.
  virtual std::optional<ChainReader> state(const ChainOptions& /*options*/) const {
    return std::nullopt;
  }
  /// The file itself first, the full one last, as headers tell. @throws as read() if one that
  /// it is based on cannot be found.
  virtual std::vector<LinkFacts> links(const std::string& path) const;

  /// In the mapping where it lies there as it is, and holds the file open then; else decoded.
  /// @throws FormatError, IntegrityError, IoError that name the file and the tensor.
  virtual Tensor read(std::size_t i) const = 0;
  /// The elements that the codes of a type of the format's own stand for. For all else, and
  /// for a type of which that is not known, read(i).
  virtual Tensor restored(std::size_t i) const { return read(i); }
  /// To be read in parts; those of restored(i).
  virtual TensorElements elements(std::size_t i) const { return elements_of(restored(i)); }
  /// Whether read(i) takes no memory of its own.
  virtual bool is_mapped(std::size_t i) const { return facts_.tensors[i].in_place; }
  /// Hands on the bytes of read(i) in order; of a dense tensor in pieces of whole elements where a
  /// format need not decode all at once.
  virtual void visit(std::size_t i, const PieceSink& sink) const { sink(read(i).bytes()); }
  /// Everything of the tensor that can be wrong, checksums too. @throws as read().
  virtual void check(std::size_t i) const { static_cast<void>(read(i)); }
  /// The same of all that opening the file has not checked, as Verification::at_open asks.
  virtual void check_all() const;

 protected:
  OpenedFile() = default;
  OpenedFacts facts_;

 private:
  mutable io::Once names_known_;
  mutable std::unordered_map<std::string_view, std::size_t> places_;
};

/// How a room opens a file. @throws IoError, FormatError, IntegrityError, UnsupportedError.
using OpenFormat = std::shared_ptr<const OpenedFile> (*)(const io::InputFile& input,
                                                         const OpenOptions& options);

}  // namespace thalia::formats
