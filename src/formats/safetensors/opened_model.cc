// Opening a model is reading its index and then the header of every file. Both may change in
// between, where somebody saves another model there. A save replaces the index in one step and
// writes no file of an older model over (model_writer.h), so an index that is still in its place
// after all files were opened has met its own files.
#include "formats/safetensors/opened_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "formats/safetensors/place.h"
#include "io/file/posix_file.h"
#include "io/memory/allocation_limit.h"
#include "io/path/base_file.h"
#include "thalia/error.h"
#include "thalia/files.h"

namespace thalia::formats::safetensors {
namespace {

void parse_file(ModelFile& file, const SafetensorsModelOptions& options) {
  with_path(file.path.native(), [&] {
    stop_if_cancelled(options.chain.read.work.cancel);
    const io::FileBytes& bytes = *file.bytes;
    file.parsed = parse_safetensors(
        bytes.bytes(), options.max_header_bytes, options.chain.read.input.limits,
        [&](std::uint64_t offset, std::uint64_t length) { bytes.touch(offset, length); });
  });
}

// A file that an index names is opened as one that a stranger named.
void open_named(ModelFile& file, const SafetensorsModelOptions& options) {
  io::BaseFile found =
      io::open_base(file.path, options.chain.read.input.access, options.chain.bases);
  if (!found.bytes) {
    const ErrorContext context{.path = file.path.string(), .section = "index"};
    if (found.reason.empty()) throw IoError("open of a file that the index names", ENOENT, context);
    throw FormatError(ErrorCode::bad_value, "the index names this file: " + found.reason, context);
  }
  file.bytes = std::move(found.bytes);
  parse_file(file, options);
}

// What is in a file counts; only if that is no JSON at all, the name says what it should be.
bool is_index(const std::filesystem::path& path, const io::FileBytes& file) {
  const std::uint64_t known = std::min<std::uint64_t>(file.bytes().size(), kSafetensorsPrefix);
  const ByteSpan start = file.touched(0, known);
  if (begins_as_json(start)) return true;
  return is_index_path(path) && std::ranges::find(start, std::byte{}) == start.end();
}

void read_index(OpenedModel& model, const SafetensorsModelOptions& options) {
  with_path(model.path.native(), [&] {
    const ReadLimits& limits = options.chain.read.input.limits;
    const std::uint64_t size = model.index_file->bytes().size();
    io::check_json_length("index", size, limits, size);
    const ByteSpan bytes = model.index_file->touched(0, size);
    // A copy: the file may change under a mapping.
    model.index_text.emplace(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    model.index = parse_index(*model.index_text, limits, options.max_files);
  });
}

void check_tensor_count(const OpenedModel& model, const ReadLimits& limits) {
  std::uint64_t count = 0;
  for (const ModelFile& file : model.files) count += file.parsed.tensors.size();
  if (count > limits.max_tensors) fail_limit("index", "max_tensors", count, limits.max_tensors);
}

}  // namespace

OpenedModel open_files(const io::InputFile& input, const SafetensorsModelOptions& options) {
  OpenedModel model{.path = find_safetensors_model(input.path())};
  const Access access = options.chain.read.input.access;
  auto bytes =
      model.path == input.path() ? input.bytes(access) : io::FileBytes::open(model.path, access);
  if (!is_index(model.path, *bytes)) {
    model.files.push_back({.name = model.path.filename().string(), .path = model.path});
    try {
      model.files[0].bytes = std::move(bytes);
      parse_file(model.files[0], options);
    } catch (const FormatError&) {
      model.files[0].fault = std::current_exception();
    } catch (const UnsupportedError&) {
      model.files[0].fault = std::current_exception();
    }
    return model;
  }
  model.index_file = std::move(bytes);
  read_index(model, options);
  for (const std::string& name : model.index.files)
    model.files.push_back({.name = name, .path = folder_of(model.path) / name});
  parallel_for(model.files.size(),
               resolve_threads(options.chain.read.work.threads, model.files.size()),
               [&](std::size_t i) {
                 try {
                   open_named(model.files[i], options);
                 } catch (const CancelledError&) {
                   throw;
                 } catch (const Error&) {
                   model.files[i].bytes = nullptr;
                   model.files[i].fault = std::current_exception();
                 }
               });
  check_tensor_count(model, options.chain.read.input.limits);
  return model;
}

bool was_replaced(const OpenedModel& model) {
  return model.index_file && !io::is_at_path(model.index_file->fd(), model.path);
}

std::vector<Mismatch> compare_with_index(const OpenedModel& model) {
  if (!model.index_text) return {};
  std::vector<ShardContent> files;
  for (const ModelFile& file : model.files) {
    ShardContent& content = files.emplace_back();
    content.is_known = !file.fault;
    for (const NamedArray& tensor : file.parsed.tensors) content.tensors.push_back(tensor.name);
  }
  return compare_with_index(model.index, files);
}

void require_whole(const OpenedModel& model) {
  for (const ModelFile& file : model.files)
    if (file.fault) std::rethrow_exception(file.fault);
  refuse_mismatch(compare_with_index(model), model.index, model.path.string());
}

OpenedModel open_faulty(const io::InputFile& input, const SafetensorsModelOptions& options) {
  OpenedModel model = open_files(input, options);
  for (int tries = 1; tries < kOpenTries && was_replaced(model); ++tries)
    model = open_files(input.path(), options);
  return model;
}

OpenedModel open_model(const io::InputFile& input, const SafetensorsModelOptions& options) {
  for (int tries = 1;; ++tries) {
    OpenedModel model{.path = input.path()};
    std::exception_ptr fault;
    try {
      // What replaced it lies at the path, and is opened there.
      model = tries == 1 ? open_files(input, options) : open_files(input.path(), options);
      require_whole(model);
    } catch (const Error&) {
      fault = std::current_exception();
    }
    if (tries < kOpenTries && was_replaced(model)) continue;
    if (fault) std::rethrow_exception(fault);
    return model;
  }
}

namespace {

std::uint64_t offset_of(const ModelFile& file, const NamedArray& tensor) {
  return static_cast<std::uint64_t>(tensor.bytes.data() - file.bytes->bytes().data());
}

}  // namespace

Tensor tensor_of(const ModelFile& file, const NamedArray& tensor) {
  return with_path(file.path.native(), [&] {
    file.bytes->touch(offset_of(file, tensor), tensor.bytes.size());
    return Tensor::adopt({.dtype = tensor.dtype, .shape = tensor.shape}, tensor.bytes, file.bytes);
  });
}

void visit_tensor(const ModelFile& file, const NamedArray& tensor, const PieceSink& sink) {
  // The bytes of a piece: whole elements, whatever their type.
  constexpr std::uint64_t kPiece = 1 << 20;
  if (file.bytes->access() != Access::copied) return sink(tensor.bytes);
  std::vector<std::byte> piece(std::min<std::uint64_t>(kPiece, tensor.bytes.size()));
  const std::uint64_t begin = offset_of(file, tensor);
  for (std::uint64_t at = 0; at < tensor.bytes.size(); at += kPiece) {
    const MutableByteSpan part =
        MutableByteSpan(piece).first(std::min(kPiece, tensor.bytes.size() - at));
    with_path(file.path.native(), [&] { file.bytes->read(begin + at, part); });
    sink(part);
  }
}

}  // namespace thalia::formats::safetensors
