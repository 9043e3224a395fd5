// The 32 bytes before a payload, which repeat what the directory says.
#pragma once

#include "container/file/open_file.h"
#include "format/tensor.h"

namespace thalia::container {

/// @throws FormatError naming the first field that differs.
void verify_payload_header(const detail::OpenFile& file, const format::TensorEntry& entry,
                           std::uint64_t offset);

}  // namespace thalia::container
