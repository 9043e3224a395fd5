// The folder of a version gets its file of tensors first and its index last, so that who looks for
// the index finds a whole version. One pass finds the tensors that changed; a second one makes each
// frame while it is written, so that memory is a few pieces a thread, however much changed.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/safetensors/header.h"
#include "formats/safetensors/parse.h"
#include "formats/weight_sync/byte_change.h"
#include "formats/weight_sync/output_folder.h"
#include "formats/weight_sync/slime_index.h"
#include "formats/weight_sync/weight_writers.h"
#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "io/system/process.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats {
namespace weight_sync {
namespace {

using Path = std::filesystem::path;

constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kFile = "model-00000-of-00001.safetensors";

std::uint64_t version_of(const Path& folder) {
  constexpr std::string_view kPrefix = "weight_v";
  std::string name = folder.filename().string();
  if (name.empty()) name = folder.parent_path().filename().string();
  const auto number = name.starts_with(kPrefix)
                          ? whole_number(std::string_view(name).substr(kPrefix.size()))
                          : std::nullopt;
  if (!number || *number == 0 || name != version_folder(*number)) {
    fail_argument(ErrorCode::bad_argument, "output", printable(name),
                  "weight_vNNNNNN, from weight_v000001 on: the version");
  }
  return *number;
}

// slime takes every safetensors file of the folder as one of the version.
void check_folder(const Path& path) {
  const auto folder = io::Folder::find(path);
  if (!folder) return;
  for (const io::FolderEntry& entry : folder->entries()) {
    if (entry.name == kIndex || entry.name == kFile || !entry.name.ends_with(".safetensors"))
      continue;
    io::fail_exists(path / entry.name);
  }
}

std::vector<std::size_t> changed_tensors(const ModelPair& models, const OpenedFile& next,
                                         const Work& work, WeightDeltaResult& result) {
  std::vector<std::size_t> changed;
  io::ThreadLock lock;
  std::atomic<std::uint64_t> bytes = 0;
  models.compare(work, [&](std::size_t i, ByteSpan before, ByteSpan after) {
    bytes += after.size();
    if (after.empty() || std::memcmp(before.data(), after.data(), after.size()) == 0) return;
    const std::lock_guard held(lock);
    changed.push_back(i);
  });
  std::ranges::sort(changed);
  result.tensors = next.tensor_count();
  result.elements = bytes;
  result.changed_tensors = changed.size();
  return changed;
}

/// The file of a version's frames, which are made on several threads and lie in the order of their
/// names. Who makes the next one writes it piece by piece; others keep little of theirs, and wait
/// for their turn with the rest. The header's room is that of the longest frames that there can be:
/// what it does not take of it is spaces.
class FramesFile {
 public:
  FramesFile(const Path& path, std::vector<std::size_t> tensors, const OpenedFile& next,
             const SlimeIndex& index, const WeightDeltaOptions& options)
      : index_(index), out_(path, options.output, options.work.cancel) {
    const std::size_t digits = checksum_text(index.checksum, {}).size();
    for (const std::size_t i : tensors) {
      const AnyTensor tensor = next.stored(i);
      arrays_.push_back({.name = tensor.name, .dtype = DType::u8, .shape = {}, .bytes = {}});
      const std::uint64_t bytes = tensor.layout.shape.byte_length(tensor.layout.dtype).value_or(0);
      lengths_.push_back(most_frame_bytes(index.encoding, bytes));
      checksums_.emplace_back(tensor.name, std::string(digits, '0'));
    }
    SafetensorsHeader header = make_header();
    // By tensor of the model, in the order of the file.
    for (const std::size_t k : header.order) {
      places_[tensors[k]] = order_.size();
      order_.push_back(tensors[k]);
    }
    ordered_ = std::move(header.order);
    head_bytes_ = header.bytes.size();
    out_.write(as_byte_span(header.bytes));
  }

  /// Tensors of the model, as their frames lie: add() is called for them in this order.
  std::span<const std::size_t> order() const noexcept { return order_; }
  std::uint64_t changed() const noexcept { return changed_; }

  /// By several threads.
  void add(std::size_t tensor, ByteSpan before, ByteSpan after) {
    const std::size_t turn = places_.at(tensor);
    const std::size_t k = ordered_[turn];
    try {
      std::vector<std::byte> kept;
      std::uint64_t length = 0;
      bool has_turn = false;
      const auto write = [&](ByteSpan piece) {
        length += piece.size();
        if (!has_turn && kept.size() + piece.size() <= kKept) {
          kept.insert(kept.end(), piece.begin(), piece.end());
          return;
        }
        if (!has_turn) {
          await(turn);
          has_turn = true;
          out_.write(kept);
        }
        out_.write(piece);
      };
      changed_ += encode_bytes(index_.encoding, before, after, write);
      checksums_[k].second = checksum_text(index_.checksum, after);
      if (!has_turn) {
        await(turn);
        out_.write(kept);
      }
      lengths_[k] = length;
    } catch (...) {
      end_turn(kNoTurn);
      throw;
    }
    end_turn(turn + 1);
  }

  /// @return bytes of the file.
  std::uint64_t commit() {
    SafetensorsHeader header = make_header();
    assert(header.bytes.size() <= head_bytes_);
    header.bytes.resize(head_bytes_, ' ');
    finish_header(header.bytes, kSafetensorsHeaderLimit);
    out_.overwrite(0, as_byte_span(header.bytes));
    out_.commit();
    return out_.size();
  }

 private:
  static constexpr std::size_t kNoTurn = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t kKept = 4 << 20;  ///< of a frame that waits

  SafetensorsHeader make_header() {
    for (std::size_t k = 0; k < arrays_.size(); ++k) arrays_[k].shape = Shape{lengths_[k]};
    return make_safetensors_header(arrays_, checksums_, kSafetensorsHeaderLimit);
  }
  void await(std::size_t turn) {
    std::unique_lock lock(mutex_);
    changed_turn_.wait(lock, [&] { return turn_ == turn || turn_ == kNoTurn; });
    // The error of a frame before this one is the one that counts.
    if (turn_ == kNoTurn)
      throw CancelledError(ErrorCode::cancelled, "a frame before this one has failed");
  }
  void end_turn(std::size_t next) {
    {
      const std::lock_guard lock(mutex_);
      if (turn_ != kNoTurn) turn_ = next;
    }
    changed_turn_.notify_all();
  }

  const SlimeIndex index_;
  std::vector<NamedArray> arrays_;
  std::vector<std::uint64_t> lengths_;  ///< of frames; those that are not made, at most
  SafetensorsMetadata checksums_;
  std::unordered_map<std::size_t, std::size_t> places_;  ///< in the file, by tensor
  std::vector<std::size_t> order_;
  std::vector<std::size_t> ordered_;  ///< of arrays_, in the order of the file
  std::size_t head_bytes_ = 0;
  OutputFile out_;  ///< of who has the turn
  std::atomic<std::uint64_t> changed_ = 0;
  io::ThreadLock mutex_;
  std::condition_variable_any changed_turn_;
  std::size_t turn_ = 0;
};

}  // namespace
}  // namespace weight_sync

WeightDeltaResult write_slime_delta(const OpenedFile& base, const OpenedFile& next,
                                    const std::filesystem::path& folder,
                                    const WeightDeltaOptions& options) {
  using namespace weight_sync;
  WeightDeltaResult result;
  result.version = version_of(folder);
  const SlimeIndex index{.version = result.version,
                         .base_version = result.version - 1,
                         .encoding = byte_encoding(options.encoding),
                         .checksum = byte_checksum(options.checksum)};
  check_folder(folder);
  const ModelPair models(base, next);
  const std::vector<std::size_t> changed = changed_tensors(models, next, options.work, result);
  std::vector<std::string> names;
  for (const std::size_t i : changed) names.push_back(next.stored(i).name);
  io::MadeFolders made(folder, options.output.durability);
  remove_older(folder, {kIndex, kFile}, options.output.replace);
  if (!changed.empty()) {
    FramesFile file(folder / kFile, changed, next, index, options);
    models.compare(file.order(), options.work, [&](std::size_t i, ByteSpan before, ByteSpan after) {
      file.add(i, before, after);
    });
    result.changed_elements = file.changed();
    result.file_bytes = file.commit();
  }
  result.file_bytes += write_text(folder / kIndex, write_slime_index(index, names, kFile),
                                  options.output, options.work);
  made.keep();
  return result;
}

}  // namespace thalia::formats
