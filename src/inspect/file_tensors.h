// Every tensor of a file, or those that somebody asks for, whichever format the file has.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "inspect/opened_tensor.h"
#include "inspect/selection.h"
#include "state/precision/glob.h"
#include "thalia/formats/any_file.h"
#include "thalia/state/delta.h"

namespace thalia::inspect {

/// A file as it is stored, for commands that look. @throws as open_any().
AnyFile open_stored(const std::filesystem::path& path, const ChainOptions& chain,
                    bool shared_memory = false);

/// A tensor of an open file, which it holds.
class FileTensor {
 public:
  FileTensor(AnyFile file, std::size_t number)
      : file_(std::move(file)), number_(number), told_(file_.stored(number)) {}

  /// That it goes by in patterns. Of a connection's matrix the region is empty.
  state::TensorNames names() const noexcept {
    return {.path = told_.path, .region = told_.region, .name = told_.name};
  }
  /// What the file's tables say; nothing else is read. Of a delta, what it stores itself.
  const AnyTensor& list() const noexcept { return told_; }
  /// Its elements; one that has to be restored whole is. @throws what reading it throws.
  OpenedTensor open() const { return {told_.region, told_.name, file_.elements(number_)}; }
  /// Of a type of the format's own, the codes in place of elements.
  OpenedTensor open_codes() const {
    if (told_.type.empty()) return open();
    return {told_.region, told_.name, elements_of(file_.read(number_))};
  }

 private:
  AnyFile file_;
  std::size_t number_;
  AnyTensor told_;
};

using VisitTensor = std::function<void(const FileTensor& tensor)>;

/// Calls `visit` with each tensor that the selection takes, in the order of the file, matrices of
/// connections last. @throws UsageError (not_found) at the end, for a pattern that fits nothing.
void visit_tensors(const AnyFile& file, Selection& selection, const VisitTensor& visit);

/// By any of its names, as it is or as ls escapes it. @throws as AnyFile::at().
FileTensor find_tensor(const AnyFile& file, std::string_view name);

}  // namespace thalia::inspect
