// Writing a file that was planned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "formats/gptrs/layout.h"
#include "formats/source/piece_sink.h"

namespace thalia::formats::gptrs {

/// Hands on the payload of the i-th of `tensors` planned ones, in the order of the file.
using EmitPlanned = std::function<void(std::size_t i, const PieceSink& sink)>;

/// Atomically. @throws IoError, CancelledError, what `emit` throws. @return bytes of the file.
std::uint64_t write_planned(const std::filesystem::path& path, const PlannedFile& plan,
                            std::size_t tensors, const OutputOptions& output, const Work& work,
                            const EmitPlanned& emit);

}  // namespace thalia::formats::gptrs
