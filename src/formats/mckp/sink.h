// MCKP files, written through the interface of all formats.
#pragma once

#include "formats/source/tensor_sink.h"

namespace thalia::formats {

/// A WriteTensors. The metadata become the file's, verbatim; sparse tensors stay sparse. With
/// SinkOptions::base the file is a delta of that one, an MCKP file: tensors that the base has in
/// the same layout are stored as differences if that is smaller. The base's key is its path from
/// the output's folder, where it lies in that or below it; else its name alone, which announce()
/// tells: a reader has to be told the folder.
/// @throws besides, before anything is written: what opening the base throws; UnsupportedError for
/// a base without a content hash; UsageError (bad_argument) for a base that has no legal key, that
/// makes a cycle or a chain of more than 1,024 files, and where the output would replace a file of
/// its own chain.
std::uint64_t write_mckp(const std::filesystem::path& output, const SinkInput& input,
                         const SinkOptions& options, const EmitPayload& emit);

}  // namespace thalia::formats
