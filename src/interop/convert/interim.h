#pragma once
#include "interop/shared/tensor_sink.h"
#include "interop/shared/tensor_source.h"
namespace thalia::interop {
std::shared_ptr<const TensorSource> open_safetensors_source(const std::filesystem::path& path,
                                                            const SourceOptions& options);
std::shared_ptr<const TensorSource> open_mckp_source(const std::filesystem::path& path,
                                                     const SourceOptions& options);
std::shared_ptr<const TensorSource> open_mst_source(const std::filesystem::path& path,
                                                    const SourceOptions& options);
std::uint64_t write_safetensors_tensors(const std::filesystem::path& output, const SinkInput& input,
                                        const SinkOptions& options, const EmitPayload& emit);
std::uint64_t write_mckp(const std::filesystem::path& output, const SinkInput& input,
                         const SinkOptions& options, const EmitPayload& emit);
}  // namespace thalia::interop
