// Opening a model is reading its index and then the header of every file. Both may change in
// between, where somebody saves another model there. A save replaces the index in one step and
// writes no file of an older model over (model_writer.h), so an index that is still in its place
// after all files were opened has met its own files.
#include "interop/safetensors/opened_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "interop/safetensors/place.h"
#include "interop/shared/list_names.h"
#include "io/allocation_limit.h"
#include "io/base_file.h"
#include "io/posix_file.h"
#include "thalia/error.h"
#include "thalia/paths.h"

namespace thalia::interop::safetensors {
namespace {

void parse_file(OpenedFile& file, const SafetensorsModelOptions& options) {
  with_path(file.path.native(), [&] {
    stop_if_cancelled(options.read.work.cancel);
    const io::FileBytes& bytes = *file.bytes;
    file.parsed = parse_safetensors(
        bytes.bytes(), options.max_header_bytes, options.read.input.limits,
        [&](std::uint64_t offset, std::uint64_t length) { bytes.touch(offset, length); });
  });
}

// A file that an index names is opened as one that a stranger named.
void open_named(OpenedFile& file, const SafetensorsModelOptions& options) {
  io::BaseFile found = io::open_base(file.path, options.read.input.access, options.bases);
  if (!found.bytes) {
    const ErrorContext context{.path = file.path.string(), .section = "index"};
    if (found.reason.empty()) throw IoError("open of a file that the index names", ENOENT, context);
    throw FormatError(ErrorCode::bad_value, "the index names this file: " + found.reason, context);
  }
  file.bytes = std::move(found.bytes);
  parse_file(file, options);
}

// What is in a file counts; only where that is no JSON at all, the name says what it should be.
bool is_index(const std::filesystem::path& path, const io::FileBytes& file) {
  const std::uint64_t known = std::min<std::uint64_t>(file.bytes().size(), kSafetensorsPrefix);
  const ByteSpan start = file.touched(0, known);
  if (begins_as_json(start)) return true;
  return is_index_path(path) && std::ranges::find(start, std::byte{}) == start.end();
}

void read_index(OpenedModel& model, const SafetensorsModelOptions& options) {
  with_path(model.path.native(), [&] {
    const ReadLimits& limits = options.read.input.limits;
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
  for (const OpenedFile& file : model.files) count += file.parsed.tensors.size();
  if (count > limits.max_tensors) fail_limit("index", "max_tensors", count, limits.max_tensors);
}

// The first mismatch, and with it the names of all of its kind.
[[noreturn]] void fail_mismatch(const std::vector<Mismatch>& found, const OpenedModel& model) {
  std::vector<std::string> alike;
  for (const Mismatch& mismatch : found)
    if (mismatch.kind == found.front().kind) alike.push_back(mismatch.tensor);
  throw FormatError(ErrorCode::inconsistent, describe(found.front(), model),
                    {.path = model.path.string(),
                     .section = "index",
                     .tensor = printable(found.front().tensor),
                     .value = list_names(alike)});
}

}  // namespace

OpenedModel open_files(const std::filesystem::path& path, const SafetensorsModelOptions& options) {
  OpenedModel model{.path = find_safetensors_model(path)};
  auto bytes = io::FileBytes::open(model.path, options.read.input.access);
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
  parallel_for(model.files.size(), resolve_threads(options.read.work.threads, model.files.size()),
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
  check_tensor_count(model, options.read.input.limits);
  return model;
}

bool was_replaced(const OpenedModel& model) {
  return model.index_file && !io::is_at_path(model.index_file->fd(), model.path);
}

std::vector<Mismatch> compare_with_index(const OpenedModel& model) {
  std::vector<Mismatch> found;
  if (!model.index_text) return found;
  std::unordered_map<std::string_view, std::size_t> listed, held;
  for (const IndexedTensor& tensor : model.index.tensors) listed.emplace(tensor.name, tensor.file);
  // Repeated ones are noted when they come, behind what the index says.
  std::vector<Mismatch> of_files;
  for (std::size_t f = 0; f < model.files.size(); ++f) {
    for (const SafetensorsTensor& tensor : model.files[f].parsed.tensors) {
      const auto [place, is_new] = held.emplace(tensor.name, f);
      if (!is_new) {
        of_files.push_back({MismatchKind::repeated, tensor.name, f, place->second});
      } else if (!listed.contains(tensor.name)) {
        of_files.push_back({MismatchKind::unlisted, tensor.name, f});
      }
    }
  }
  for (const IndexedTensor& tensor : model.index.tensors) {
    if (model.files[tensor.file].fault) continue;
    const auto place = held.find(tensor.name);
    if (place == held.end()) {
      found.push_back({MismatchKind::missing, tensor.name, tensor.file});
    } else if (place->second != tensor.file) {
      found.push_back({MismatchKind::elsewhere, tensor.name, tensor.file, place->second});
    }
  }
  found.insert(found.end(), std::make_move_iterator(of_files.begin()),
               std::make_move_iterator(of_files.end()));
  return found;
}

std::string describe(const Mismatch& mismatch, const OpenedModel& model) {
  const auto name = [&](std::size_t i) { return printable(model.files[i].name); };
  switch (mismatch.kind) {
    case MismatchKind::missing:
      return fmt::format("{} has no such tensor, which the index places there",
                         name(mismatch.file));
    case MismatchKind::elsewhere:
      return fmt::format("the tensor is in {}, and the index places it in {}", name(mismatch.other),
                         name(mismatch.file));
    case MismatchKind::unlisted:
      return fmt::format("{} has a tensor that the index lacks", name(mismatch.file));
    case MismatchKind::repeated:
      break;
  }
  return fmt::format("the tensor is in {} and in {}", name(mismatch.other), name(mismatch.file));
}

OpenedModel open_model(const std::filesystem::path& path, const SafetensorsModelOptions& options) {
  for (int tries = 1;; ++tries) {
    OpenedModel model{.path = path};
    std::exception_ptr fault;
    try {
      model = open_files(path, options);
      for (const OpenedFile& file : model.files)
        if (file.fault) std::rethrow_exception(file.fault);
      if (const auto found = compare_with_index(model); !found.empty()) fail_mismatch(found, model);
    } catch (const Error&) {
      fault = std::current_exception();
    }
    if (tries < kOpenTries && was_replaced(model)) continue;
    if (fault) std::rethrow_exception(fault);
    return model;
  }
}

Tensor tensor_of(const OpenedFile& file, const SafetensorsTensor& tensor) {
  return with_path(file.path.native(), [&] {
    const auto offset =
        static_cast<std::uint64_t>(tensor.bytes.data() - file.bytes->bytes().data());
    file.bytes->touch(offset, tensor.bytes.size());
    return Tensor::adopt({.dtype = tensor.dtype, .shape = tensor.shape}, tensor.bytes, file.bytes);
  });
}

}  // namespace thalia::interop::safetensors
