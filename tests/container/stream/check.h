// Files to stream, and what a stream hands out held against what a mapped reader reads.
#pragma once

#include <filesystem>
#include <vector>

#include "support/sample.h"
#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/stream.h"

namespace thalia::test {

/// A few MiB in every encoding: large tensors and tiny ones, aligned and not, empty ones,
/// connections.
Sample stream_sample();
/// Saves it; on a disk, so that its pages can leave the cache.
void save_stream_sample(const std::filesystem::path& path, const SaveOptions& options);

/// All tensors of the file, as they lie in it, connections included.
std::vector<TensorView> all_tensors(const Reader& reader);

/// Takes everything from `stream`, which was asked for `asked`: each tensor once, in that order
/// where `in_order`, with the bytes that TensorView::read of another reader gives.
/// @return the stream's result.
StreamResult check_stream(StreamReader& stream, const std::vector<TensorView>& asked,
                          bool in_order = true);

/// Puts the file's pages out of the page cache, as far as that is possible.
void drop_pages(const std::filesystem::path& path);

}  // namespace thalia::test
