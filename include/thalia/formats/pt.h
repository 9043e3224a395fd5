// PyTorch's files: .pt, .pth and .bin of torch.save, and programs of TorchScript. Nothing of them
// is ever run: their pickles are read by a reader that knows tensors and plain containers, and
// refuses every other Python object by its name. docs/format/pt.md.
//
//   const thalia::PtFile file = thalia::PtFile::open("model.pt");
//   for (const thalia::PtTensor& tensor : file.tensors())
//     const thalia::Tensor elements = file.read(tensor.name);
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/storage.h"
#include "thalia/tensor_layout.h"
#include "thalia/tensor_value.h"

namespace thalia {

/// A tensor, or a numpy array, at its place in the saved object.
struct PtTensor {
  /// Keys and places in lists on the way to it, with points between: "model.0.weight". Where two
  /// ways give the same name, the second has "#2" after it.
  std::string name;
  TensorLayout layout{};  ///< of what read() gives
  /// "qint8", "quint8" or "qint32" of a quantized tensor, whose codes these elements are; else
  /// empty.
  std::string quantized{};
  /// In elements; empty of sparse tensors and arrays.
  std::vector<std::uint64_t> stride{};
  std::uint64_t storage_offset = 0;  ///< in elements
  /// The record that it lies in, without the archive's folder: "data/0". Tensors of one record
  /// share memory where their elements do. Empty of sparse tensors and arrays.
  std::string storage{};
  bool requires_grad = false;
  bool parameter = false;  ///< a torch.nn.Parameter
};

/// A mapped file. A cheap handle; immutable; any number of threads.
class PtFile {
 public:
  /// @throws IoError; FormatError for damage, and for whatever passes a limit; IntegrityError where
  /// a pickle's checksum does not hold; UnsupportedError naming a Python object that the file
  /// needs, for files from before PyTorch 1.6, and for tensors that nothing here can hold. With
  /// Access::copied the whole file is read into memory.
  static PtFile open(const std::filesystem::path& path, const ReadOptions& options = {});
  /// The same of a file's bytes. `name` is for messages.
  static PtFile from_bytes(StoredBytes bytes, std::string name = {},
                           const ReadOptions& options = {});

  /// In the order of the saved object; of a TorchScript program then its constants: "CONSTANTS.c0".
  const std::vector<PtTensor>& tensors() const noexcept;
  /// The saved object, as thalia_checkpoint keeps it: docs/use/python.md, "What a tree looks like".
  const std::string& tree() const noexcept;
  /// What else the file holds, a sentence each: code, attributes, other records.
  const std::vector<std::string>& losses() const noexcept;
  bool is_torchscript() const noexcept;
  std::string_view version() const noexcept;  ///< of the archive: "3"
  std::uint64_t file_bytes() const noexcept;

  /// Row by row. In the mapping where the elements lie there so, and it stays open then; else
  /// gathered, within the limits. Before the first read from a record its checksum is compared,
  /// unless the options said Verification::off. @throws UsageError (not_found); FormatError,
  /// CompressionError, IntegrityError (of a compressed record), UnsupportedError.
  Tensor read(std::string_view name) const;
  /// Compares the checksums of the records that a tensor lies in. @throws IntegrityError.
  void check(std::string_view name) const;

 private:
  struct Impl;
  detail::Shared<const Impl> impl_;
};

/// What save_pt() writes; bytes are borrowed until it returns.
struct PtInput {
  std::string name;
  DType dtype = DType::f32;
  Shape shape{};
  ByteSpan bytes{};  ///< row by row
};

/// Writes a dictionary of tensors atomically (temporary, sync, rename), as torch.save does: the
/// names are its keys. torch.load opens it with weights_only=True, and with mmap=True.
/// @throws IoError; UsageError (duplicate, size_mismatch, bad_argument); UnsupportedDtypeError for
/// types that torch lacks. @return bytes of the file.
std::uint64_t save_pt(const std::filesystem::path& path, const std::vector<PtInput>& tensors,
                      const OutputOptions& output = {});

}  // namespace thalia
