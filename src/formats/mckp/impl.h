// What an open MCKP file is made of.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/inside.h"
#include "formats/mckp/block.h"
#include "formats/mckp/header.h"
#include "thalia/formats/mckp.h"

namespace thalia::formats {

// A whole MCKP file as its header and the places of its blocks. docs/format/mckp.md.

struct ParsedMckp {
  MckpHeader header;
  std::vector<MckpTensor> tensors;  ///< their blocks follow each other and lie in the file
  std::uint64_t checksum = 0;       ///< of everything before the footer
  bool header_is_checked = false;   ///< its frame had a checksum of its own
};

/// Reads prelude, header and footer. @throws as MckpFile::open(), without the path.
ParsedMckp parse_mckp(ByteSpan file, const ReadLimits& limits);

/// The payload of a tensor of `file`, after comparing its block's header and, if `check` asks for
/// it, the checksum. @throws FormatError (inconsistent), IntegrityError.
ByteSpan mckp_payload(ByteSpan file, const MckpTensor& tensor, bool check);

/// @throws IntegrityError where the file's checksum is wrong.
void check_mckp_checksum(ByteSpan file, const ParsedMckp& parsed);

}  // namespace thalia::formats

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

namespace formats {
inline const auto& impl_of(const MckpFile& file) {
  return *detail::Inside::impl(file);
}
}  // namespace formats

}  // namespace thalia
