// Every tensor of a file, or those that somebody asks for, whichever format the file has.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "inspect/listed_tensor.h"
#include "inspect/opened_tensor.h"
#include "inspect/selection.h"
#include "model/precision/glob.h"
#include "thalia/delta.h"
#include "thalia/reader.h"
#include "thalia/tensor.h"

namespace thalia::inspect {

/// A tensor that is visited: valid during the call.
class FileTensor {
 public:
  explicit FileTensor(const model::TensorNames& names)
      : path_(names.path), region_(names.region), name_(names.name) {}
  virtual ~FileTensor() = default;
  FileTensor& operator=(const FileTensor&) = delete;

  /// That it goes by in patterns. Of a connection's matrix the region is empty.
  model::TensorNames names() const noexcept {
    return {.path = path_, .region = region_, .name = name_};
  }
  /// What the file's tables say; nothing else is read. Of a delta, what it stores itself.
  virtual ListedTensor list() const = 0;
  /// Its elements; one that has to be restored whole is. @throws what reading it throws.
  virtual OpenedTensor open() const = 0;
  /// Of a type of the format's own, the codes in place of elements.
  virtual OpenedTensor open_codes() const { return open(); }
  /// The same for as long as somebody holds it, with its file.
  virtual std::shared_ptr<const FileTensor> keep() const = 0;

 protected:
  FileTensor(const FileTensor&) = default;

 private:
  std::string path_;
  std::string region_;
  std::string name_;
};

/// A matrix of a connection, "weights" or "delays": its name is SOURCE->TARGET.MATRIX.
ListedTensor listed_matrix(const ConnectionView& connection, const TensorView& view,
                           const char* matrix);

using VisitTensor = std::function<void(const FileTensor& tensor)>;

/// Calls `visit` with each tensor that the selection takes, in the order of the file, matrices of
/// connections last. @throws UsageError (not_found) at the end, for a pattern that fits nothing;
/// what opening the file throws.
void visit_tensors(const std::filesystem::path& path, Selection& selection,
                   const ChainOptions& options, const VisitTensor& visit);
/// Each tensor, whether the selection takes it or not: it is told of the regions alone.
/// `shared_memory`: as of OpenOptions.
void visit_every_tensor(const std::filesystem::path& path, Selection& selection,
                        const ChainOptions& options, bool shared_memory, const VisitTensor& visit);

}  // namespace thalia::inspect
