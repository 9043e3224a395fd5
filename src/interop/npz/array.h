// One array of a file: what its header says of it, and its elements as a tensor.
#pragma once

#include <memory>
#include <string>

#include "interop/shared/npy_header.h"
#include "interop/shared/zip_member.h"
#include "thalia/formats/npz.h"

namespace thalia::interop::npz {

/// Where the array lies in its file is the caller's to fill in.
NpyArray describe_array(std::string name, const NpyHeader& header);

/// Whether elements in the file are not those of a tensor as they lie there.
bool is_converted(const NpyHeader& header) noexcept;

/// Elements that lie in memory as in the file: viewed, or converted. @throws FormatError
/// (limit_exceeded).
Tensor view_elements(const NpyHeader& header, ByteSpan elements,
                     const std::shared_ptr<const void>& owner, const ReadLimits& limits);

/// Of a deflated member, whose CRC-32 is compared. @throws CompressionError, IntegrityError;
/// FormatError (limit_exceeded).
Tensor inflate_elements(const NpyHeader& header, const ZipMember& member, ByteSpan deflated,
                        const ReadLimits& limits);

}  // namespace thalia::interop::npz
