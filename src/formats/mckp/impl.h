// What an open MCKP file is made of.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/mckp/block.h"
#include "formats/mckp/parse.h"
#include "thalia/formats/mckp.h"

namespace thalia {

struct MckpFile::Impl {
  StoredBytes stored;
  std::string name;  ///< for messages
  MckpReadOptions options;
  formats::ParsedMckp parsed;
  std::unordered_map<std::string_view, std::size_t> places;  ///< by name, which lies in `parsed`

  const MckpTensor& tensor(std::string_view wanted) const;  ///< @throws UsageError (not_found)
  ByteSpan payload_of(const MckpTensor& tensor) const;      ///< with its checksum checked
  formats::MckpBlock block_of(const MckpTensor& tensor) const;
  /// A tensor, from a base that fits or from none, its indices checked.
  Tensor restored(const MckpTensor& tensor, const Tensor* base, unsigned threads) const;
  /// @throws FormatError for an index of a restored tensor.
  void check_indices(const MckpTensor& tensor, const Tensor& restored) const;
  /// The same in place: of a delta, `raw` holds the base.
  void decode(const MckpTensor& tensor, MutableByteSpan raw, unsigned threads) const;
};

}  // namespace thalia
