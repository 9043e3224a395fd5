// What the parts of TensorView share.
#pragma once

#include <string_view>

#include "base/utf8.h"
#include "container/file/open_file.h"
#include "format/tensor.h"
#include "thalia/tensor.h"

namespace thalia::container {

/// True if the stored bytes, decompressed, are the logical bytes: no base, no quantization.
inline bool is_plain(Encoding encoding) {
  return encoding == Encoding::dense || is_sparse(encoding);
}

/// True if a base is needed, as only a delta has one.
inline bool needs_base(Encoding encoding) {
  return encoding >= Encoding::same_as_base && encoding <= Encoding::step_delta;
}

/// @throws UnsupportedError naming the encoding.
[[noreturn]] void fail_unresolved(Encoding encoding);

/// @throws UsageError (wrong_state) unless the tensor has this encoding.
void require_encoding(const TensorView& tensor, Encoding wanted);
/// @throws UsageError (wrong_state), with the way that decompresses, if the bytes are not in the
/// file as they are.
void require_raw(const TensorView& tensor, std::string_view other_way);
/// @throws UsageError (bad_argument) unless arrays of 8-byte numbers may begin there.
void require_aligned(MutableByteSpan storage);

/// The logical bytes of any encoding into `out`. @throws as TensorView::read().
void read_logical(const TensorView& tensor, const detail::OpenFile& file,
                  const format::TensorEntry& entry, MutableByteSpan out);

/// Restores a quantized tensor: out.size() must be its dense_bytes(). @throws FormatError for
/// arrays that break the rules; IntegrityError.
void read_quantized(const detail::OpenFile& file, const format::TensorEntry& entry,
                    MutableByteSpan out);

/// Checks every index of a csr or coo tensor's logical bytes, aligned to 8, and the padding after
/// them. @return the values. @throws FormatError.
ByteSpan check_sparse_payload(const TensorView& tensor, ByteSpan payload);

/// Runs `action`; an error that passes gets the names of file, region and tensor.
template <typename Action>
auto with_names(const detail::OpenFile& file, std::string_view region, std::string_view tensor,
                Action action) {
  return file.named([&] {
    try {
      return action();
    } catch (Error& error) {
      error.add_region(printable(region));
      error.add_tensor(printable(tensor));
      throw;
    }
  });
}

}  // namespace thalia::container
