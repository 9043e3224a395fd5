// Every tensor of a file, or those that somebody asks for, whichever format the file has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspect/opened_tensor.h"
#include "state/precision/glob.h"
#include "thalia/formats/any_file.h"
#include "thalia/state/delta.h"

namespace thalia::inspect {

// Which tensors of a file a user asks for. Every command takes the same words.

/// Patterns fit names, region-qualified names and paths, typed as they are or as they are shown;
/// one that is exactly a region's name takes that region and nothing else. Without patterns
/// everything is taken.
class Selection {
 public:
  /// `option` is what the user calls the patterns.
  Selection(const char* option, std::vector<std::string> patterns);

  /// To be called before takes().
  void know_regions(const AnyFile& file);
  /// Whether the tensor is asked for.
  bool takes(const state::TensorNames& tensor);
  /// To be called after the last tensor. @throws UsageError (not_found) naming a pattern that fits
  /// nothing, with the name that it may have been meant to be.
  void check() const { use_.check(some_regions_); }

  /// True if it is one whole region, so that names of tensors tell them apart.
  bool is_one_region() const noexcept { return globs_.empty() && regions_.size() == 1; }

 private:
  struct Glob {
    std::string typed;
    std::string unescaped;  ///< empty if it is the same
  };

  bool everything_;
  std::vector<Glob> globs_;
  std::vector<std::string> regions_;       ///< that are asked for whole
  std::vector<std::string> some_regions_;  ///< of the file, for suggestions
  state::PatternUse use_;
};

/// A file as it is stored, for commands that look. @throws as open_any().
AnyFile open_stored(const std::filesystem::path& path, const ChainOptions& chain,
                    bool shared_memory = false);

/// A tensor of an open file, which it holds.
class ShownTensor {
 public:
  ShownTensor(AnyFile file, std::size_t number)
      : file_(std::move(file)), number_(number), reported_(file_.stored(number)) {}

  /// The names that it goes by in patterns. The region is empty for a connection's matrix.
  state::TensorNames names() const noexcept {
    return {.path = reported_.path, .region = reported_.region, .name = reported_.name};
  }
  /// What the file's tables say; nothing else is read. For a delta, what it stores itself.
  const AnyTensor& list() const noexcept { return reported_; }
  /// Its elements; one that has to be restored whole is. @throws what reading it throws.
  OpenedTensor open() const { return {reported_.region, reported_.name, file_.elements(number_)}; }
  /// The same; for a type of the format's own, the codes in place of elements.
  OpenedTensor open_codes() const {
    if (reported_.type.empty()) return open();
    return {reported_.region, reported_.name, elements_of(file_.read(number_))};
  }

 private:
  AnyFile file_;
  std::size_t number_;
  AnyTensor reported_;
};

using VisitTensor = std::function<void(const ShownTensor& tensor)>;

/// Calls `visit` with each tensor that the selection takes, in the order of the file, matrices of
/// connections last. @throws UsageError (not_found) at the end, for a pattern that fits nothing.
void visit_tensors(const AnyFile& file, Selection& selection, const VisitTensor& visit);

/// By any of its names, as it is or as ls escapes it. @throws as AnyFile::at().
ShownTensor find_tensor(const AnyFile& file, std::string_view name);

}  // namespace thalia::inspect
