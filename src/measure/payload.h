// What is measured: a payload as the tensors of a file, saved, loaded, streamed and verified.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/stream.h"
#include "thalia/types.h"
#include "thalia/verify.h"
#include "thalia/writer.h"

namespace thalia::measure {

/// What a large payload is cut into where the number of tensors does not matter.
inline constexpr std::uint64_t kTensorBytes = 16 << 20;

/// The name of tensor `i`.
std::string tensor_name(std::uint64_t i);

/// Declares `payload` as tensors of `tensor_bytes` (the last one shorter), in one region "model".
/// A payload's bytes stay borrowed.
void add_tensors(Writer& writer, ByteSpan payload, DType dtype,
                 std::uint64_t tensor_bytes = kTensorBytes);
/// A new file of these tensors, not synced unless the options say so.
SaveResult save(const std::filesystem::path& path, ByteSpan payload, DType dtype,
                std::uint64_t tensor_bytes = kTensorBytes,
                const SaveOptions& options = {.output = {.durability = Durability::none}});

/// Copies the tensors of such a file to `out`, one after the other. @throws CancelledError.
void load(const Reader& reader, MutableByteSpan out, const std::stop_token& stop = {});
/// The same through a StreamReader. The options' destination is not used.
void stream(const Reader& reader, MutableByteSpan out, StreamOptions options = {});
/// thalia::verify(). @throws IntegrityError with the first finding.
void verify(const std::filesystem::path& path, const VerifyOptions& options = {});

}  // namespace thalia::measure
