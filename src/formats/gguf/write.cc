// Header first, then payloads in its order, each padded with zeros to the alignment, the last one
// too: as ggml and the Python package write files. All offsets follow from types and shapes, so
// nothing is written twice.
#include "formats/gguf/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/gguf/key_values.h"
#include "formats/gguf/name_index.h"
#include "formats/gguf/parse.h"
#include "formats/gguf/value_types.h"
#include "formats/source/refuse_tensor.h"
#include "thalia/files.h"

namespace thalia::formats::gguf {
namespace {

void check_keys(const GgufKeyValues& key_values) {
  for (const auto& [key, value] : key_values) {
    if (key.empty() || !is_valid_utf8(key))
      fail_argument(ErrorCode::bad_argument, "key", printable(key), "UTF-8, not empty");
  }
  const NameIndex keys(key_values, [](const auto& one) { return std::string_view(one.key); });
  if (const auto twice = keys.repeated()) {
    fail_argument(ErrorCode::duplicate, "key", printable(key_values[*twice].key), "",
                  "two of this key");
  }
}

std::uint32_t checked_alignment(const GgufKeyValues& key_values) {
  try {
    return read_alignment(key_values);
  } catch (const FormatError& error) {
    // A file's fault in a reader is the caller's here.
    throw UsageError(ErrorCode::bad_argument, error.message(), error.context());
  }
}

void check_names(const std::vector<GgufTensor>& tensors, bool long_names) {
  for (const GgufTensor& tensor : tensors) {
    if (!is_valid_utf8(tensor.name) || tensor.name.find('\0') != std::string::npos) {
      throw UsageError(ErrorCode::bad_argument, "the name is not UTF-8, or has a zero byte",
                       {.field = "name", .tensor = printable(tensor.name)});
    }
    if (tensor.name.size() > kMostNameBytes && !long_names) {
      refuse_tensor(tensor.name, "ggml refuses names that long", "name",
                    fmt::format("{} bytes", tensor.name.size()),
                    fmt::format("at most {}", kMostNameBytes));
    }
  }
  const NameIndex names(tensors, [](const auto& one) { return std::string_view(one.name); });
  if (const auto twice = names.repeated()) {
    throw UsageError(ErrorCode::duplicate, "two tensors have this name",
                     {.field = "name", .tensor = printable(tensors[*twice].name)});
  }
}

std::uint64_t checked_bytes_of(const GgufTensor& tensor) {
  const GgmlTypeFacts* const facts = ggml_type_facts(tensor.type);
  if (facts == nullptr) {
    throw UsageError(ErrorCode::bad_argument, "no such type of ggml",
                     {.field = "type",
                      .tensor = printable(tensor.name),
                      .value = std::to_string(static_cast<std::uint32_t>(tensor.type))});
  }
  if (tensor.shape.rank() > kMostDimensions) {
    refuse_tensor(tensor.name, "too many dimensions", "shape", tensor.shape.to_string(),
                  fmt::format("at most {} dimensions", kMostDimensions));
  }
  for (const std::uint64_t extent : tensor.shape.extents()) {
    if (extent > INT64_MAX)
      refuse_tensor(tensor.name, {}, "shape", tensor.shape.to_string(), "extents below 2^63");
  }
  if (const auto bytes = ggml_bytes(tensor.type, tensor.shape)) return *bytes;
  throw UsageError(ErrorCode::size_mismatch, "rows that are no whole blocks, or too many bytes",
                   {.field = "shape",
                    .tensor = printable(tensor.name),
                    .value = tensor.shape.to_string(),
                    .bound = fmt::format("rows of a multiple of {} elements for {}",
                                         facts->block_elements, facts->name)});
}

std::uint64_t padding_of(std::uint64_t bytes, std::uint32_t alignment) {
  return (alignment - bytes % alignment) % alignment;
}

void write_zeros(OutputFile& out, std::uint64_t bytes) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  for (; bytes > 0; bytes -= std::min<std::uint64_t>(bytes, kZeros.size()))
    out.write(ByteSpan(kZeros).first(std::min<std::uint64_t>(bytes, kZeros.size())));
}

}  // namespace

GgufPlan plan_file(const std::vector<GgufTensor>& tensors, const GgufKeyValues& key_values,
                   bool long_names) {
  check_keys(key_values);
  check_names(tensors, long_names);
  GgufPlan plan;
  plan.alignment = checked_alignment(key_values);
  std::string& header = plan.header;
  header += kMagic;
  append_number(header, kVersion);
  append_number(header, std::uint64_t{tensors.size()});
  append_number(header, std::uint64_t{key_values.size()});
  for (const GgufKeyValue& key_value : key_values) append_key_value(header, key_value);
  std::uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    const std::uint64_t bytes = checked_bytes_of(tensor);
    plan.payload_bytes.push_back(bytes);
    append_text(header, tensor.name);
    append_number(header, std::uint32_t{tensor.shape.rank()});
    for (unsigned i = tensor.shape.rank(); i-- > 0;) append_number(header, tensor.shape[i]);
    append_number(header, static_cast<std::uint32_t>(tensor.type));
    append_number(header, offset);
    if (__builtin_add_overflow(offset, bytes, &offset) ||
        __builtin_add_overflow(offset, padding_of(bytes, plan.alignment), &offset))
      refuse_tensor(tensor.name, "the tensors together pass 2^64 - 1 bytes", "offset");
  }
  header.append(padding_of(header.size(), plan.alignment), '\0');
  return plan;
}

std::uint64_t write_file(const std::filesystem::path& path, const GgufPlan& plan,
                         const GgufWriteOptions& options, const EmitPayload& emit) {
  OutputFile out(path, options.output, options.work.cancel);
  out.write(as_byte_span(plan.header));
  std::uint64_t total = 0, done = 0;
  for (const std::uint64_t bytes : plan.payload_bytes) total += bytes;
  for (std::size_t i = 0; i < plan.payload_bytes.size(); ++i) {
    const std::uint64_t before = done;
    emit(i, [&](ByteSpan piece) {
      out.write(piece);
      done += piece.size();
      if (options.work.progress) options.work.progress(done, total);
    });
    // All offsets rely on it.
    if (done - before != plan.payload_bytes[i]) {
      fail_argument(ErrorCode::size_mismatch, "payload", fmt::format("{} bytes", done - before),
                    std::to_string(plan.payload_bytes[i]));
    }
    write_zeros(out, padding_of(plan.payload_bytes[i], plan.alignment));
  }
  const std::uint64_t file_bytes = out.size();
  out.commit();
  return file_bytes;
}

}  // namespace thalia::formats::gguf

namespace thalia {

std::uint64_t save_gguf(const std::filesystem::path& path, const std::vector<GgufTensor>& tensors,
                        const GgufKeyValues& key_values, const GgufSaveOptions& options) {
  return with_path(path.native(), [&] {
    const formats::gguf::GgufPlan plan =
        formats::gguf::plan_file(tensors, key_values, options.long_names);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].bytes.size() == plan.payload_bytes[i]) continue;
      throw UsageError(ErrorCode::size_mismatch,
                       "payload of another size than type and shape ask for",
                       {.tensor = printable(tensors[i].name),
                        .value = fmt::format("{} bytes", tensors[i].bytes.size()),
                        .bound = std::to_string(plan.payload_bytes[i])});
    }
    return formats::gguf::write_file(
        path, plan, {.output = options.output, .work = options.work},
        [&](std::size_t i, const formats::PieceSink& sink) { sink(tensors[i].bytes); });
  });
}

}  // namespace thalia
