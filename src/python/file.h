// An open .thalia file and its tensors, as the module holds them.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "thalia/reader.h"
#include "thalia/state/delta.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia::python {

/// A tensor as its file stores it, and through the chain if that is a delta.
struct FileTensor {
  TensorView view;
  std::shared_ptr<const ChainReader> chain;
  bool writable;          ///< the bytes in the file; in memory alone
  TensorLayout layout{};  ///< of what is read: dense if it is restored

  FileTensor(TensorView stored, std::shared_ptr<const ChainReader> of, bool in_place)
      : view(std::move(stored)), chain(std::move(of)), writable(in_place) {
    layout = chain ? chain->describe(view).layout : view.layout();
    if (!chain && layout.encoding == Encoding::quantized) layout.encoding = Encoding::dense;
  }

  bool is_quantized() const { return !chain && view.encoding() == Encoding::quantized; }
  /// Whether the logical bytes lie in the file as they are.
  bool is_mapped() const { return !chain && view.is_raw() && !is_quantized(); }
  std::uint64_t read_bytes() const {
    if (chain) return chain->describe(view).logical_bytes;
    return is_quantized() ? view.dense_bytes() : view.logical_bytes();
  }

  void read(MutableByteSpan out) const {
    if (chain) return chain->read_part(view, 0, out);
    is_quantized() ? view.read_dense(out) : view.read(out);
  }
};

struct File {
  Reader reader;
  std::shared_ptr<const ChainReader> chain{};  ///< of a delta
  bool writable = false;                       ///< opened so

  FileTensor tensor(TensorView view) const { return {std::move(view), chain, writable}; }
};

/// A file that is open; a delta with all that it is based on.
File thalia_file(Reader reader, const ChainOptions& options);

}  // namespace thalia::python
