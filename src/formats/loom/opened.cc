// Tensors of .entity files lie in the mapping. Those of JSON checkpoints were decoded when the file
// was opened: their text cannot be found again without reading all of it.
#include "formats/loom/opened.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/checked_sum.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "formats/loom/blob_layout.h"
#include "formats/loom/checkpoint.h"
#include "formats/loom/entity_prefix.h"
#include "formats/loom/load.h"
#include "formats/loom/morph.h"
#include "formats/loom/source_metadata.h"
#include "formats/source/list_names.h"
#include "io/file/file_bytes.h"
#include "state/tensor/counted_tensor.h"
#include "thalia/formats/loom.h"

namespace thalia::formats {
namespace loom {
namespace {

/// What is known of an open file of either kind.
struct OpenFile {
  LoomFileKind kind = LoomFileKind::entity;
  std::string name;
  std::string version;
  std::uint64_t bytes = 0;
  std::uint64_t payload = 0;  ///< where blobs of a .entity file begin
  Document document;          ///< offsets of blobs are those of the file
  std::function<StoredBytes(std::size_t blob)> bytes_of;
};

class OpenedLoom : public OpenedFile {
 private:
  template <typename Call>
  decltype(auto) of_tensor(std::size_t i, const Call& call) const {
    try {
      return call();
    } catch (Error& error) {
      error.add_path(file_.name);
      error.add_tensor(printable(facts_.tensors[i].name));
      throw;
    }
  }

 public:
  OpenedLoom(OpenFile file, const OpenOptions& options)
      : file_(std::move(file)),
        limits_(options.chain.read.input.limits),
        dequantize_(options.dequantize) {
    facts_.version = file_.version;
    facts_.file_bytes = file_.bytes;
    const Document& document = file_.document;
    with_path(file_.name, [&] {
      if (file_.kind == LoomFileKind::entity) check_overlaps();
      const auto none = [](std::uint64_t) { return false; };
      network_ = load_entity(document, limits_, file_.bytes, none, file_.bytes_of);
      for (std::size_t i = 0; i < document.blobs.size(); ++i) add(i);
      facts_.metadata = source_metadata_to_json(file_.kind, document);
    });
    if (!document.unknown.empty()) {
      facts_.losses.push_back(
          fmt::format("keys that mean nothing to the format: {}", list_names(document.unknown)));
    }
    if (file_.kind == LoomFileKind::entity && has_other_bytes())
      facts_.losses.emplace_back("bytes that are no blob's");
  }

  Tensor read(std::size_t i) const override {
    return of_tensor(i, [&] {
      const AnyTensor& tensor = facts_.tensors[i];
      StoredBytes stored = file_.bytes_of(i);
      if (!is_restored(file_.document.blobs[i])) {
        check_stored(i, stored);
        return Tensor::adopt(tensor.layout, stored.bytes, stored.owner);
      }
      return restored(i, tensor.layout, stored.bytes);
    });
  }

  Tensor restored(std::size_t i) const override {
    if (facts_.tensors[i].type.empty()) return read(i);
    return of_tensor(i, [&] {
      const TensorLayout layout{.dtype = DType::f32, .shape = restored_shape(i)};
      return restored(i, layout, file_.bytes_of(i).bytes);
    });
  }

  void check(std::size_t i) const override {
    of_tensor(i, [&] { check_stored(i, file_.bytes_of(i)); });
  }

 private:
  // What is copied unchanged is no better checked by anyone else.
  void check_stored(std::size_t i, const StoredBytes& stored) const {
    const BlobRecord& blob = file_.document.blobs[i];
    if (blob_kind(blob.path) == BlobKind::q4_0) {
      static_cast<void>(decode_loom_q4_0(stored.bytes, std::nullopt, limits_));
    } else if (blob_kind(blob.path) == BlobKind::bitnet) {
      static_cast<void>(decode_loom_bitnet(stored.bytes, limits_));
    } else {
      check_count(blob);
    }
  }

  // With OpenOptions::dequantize, all that is not f32 already.
  bool is_restored(const BlobRecord& blob) const {
    if (!dequantize_) return false;
    if (blob_kind(blob.path) != BlobKind::weights) return true;
    return blob.native && parse_loom_dtype(blob.dtype) != LoomDType::float32;
  }

  void add(std::size_t i) {
    const BlobRecord& blob = file_.document.blobs[i];
    BlobLayout form = layout_of(blob);
    AnyTensor tensor{.name = blob.path, .layout = form.layout, .type = std::move(form.type)};
    if (is_restored(blob)) {
      tensor.type.clear();
      tensor.layout = {.dtype = DType::f32, .shape = restored_shape(i)};
    }
    if (file_.kind == LoomFileKind::entity) {
      tensor.offset = blob.offset;
      tensor.stored_bytes = blob.length;
      tensor.in_place = !is_restored(blob);
    }
    facts_.tensors.push_back(std::move(tensor));
  }

  // The shape of the restored elements: for a matrix whose blob says its extents, these.
  Shape restored_shape(std::size_t i) const {
    const BlobRecord& blob = file_.document.blobs[i];
    const LoomLayer* const layer = find_layer(network_, blob.path).layer;
    switch (blob_kind(blob.path)) {
      case BlobKind::bitnet: {
        const LoomBitNet matrix = loom_bitnet_facts(file_.bytes_of(i).bytes);
        return {matrix.rows, matrix.cols};
      }
      case BlobKind::q4_0:
        return {restored_count(blob, layer, 32 * loom_q4_0_blocks(file_.bytes_of(i).bytes))};
      case BlobKind::weights:
        break;
    }
    const LoomDType stored = parse_loom_dtype(blob.dtype);
    return {restored_count(blob, layer, loom_element_count(stored, blob.length))};
  }

  // Blobs may overlap, as the original reads them; but a small file has no tensors without end.
  void check_overlaps() const {
    CheckedSum bytes;
    for (const BlobRecord& blob : file_.document.blobs) bytes += blob.length;
    const std::uint64_t total = bytes.value().value_or(UINT64_MAX);
    if (total > file_.bytes) io::MemoryBudget(limits_, file_.bytes).take("blobs", total);
  }

  // After the header, and after or between the blobs.
  bool has_other_bytes() const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> extents;
    for (const BlobRecord& blob : file_.document.blobs)
      extents.emplace_back(blob.offset, blob.length);
    std::sort(extents.begin(), extents.end());
    std::uint64_t end = file_.payload;
    for (const auto& [offset, length] : extents) {
      if (offset > end) return true;
      end = std::max(end, offset + length);
    }
    return end < file_.bytes;
  }

  Tensor restored(std::size_t i, const TensorLayout& layout, ByteSpan bytes) const {
    const BlobRecord& blob = file_.document.blobs[i];
    const std::uint64_t count = *layout.shape.element_count();
    io::MemoryBudget budget(limits_, bytes.size());
    const auto copied = [&](const std::vector<float>& weights) {
      budget.take("weights", weights.size(), sizeof(float));
      return state::counted_copy(budget, "weights", layout, as_byte_span(weights));
    };
    if (blob_kind(blob.path) == BlobKind::q4_0)
      return copied(decode_loom_q4_0(bytes, count, limits_));
    if (blob_kind(blob.path) == BlobKind::bitnet) return copied(decode_loom_bitnet(bytes, limits_));
    check_count(blob);
    return state::counted_tensor(budget, "weights", layout, [&](MutableByteSpan out) {
      unpack_to(parse_loom_dtype(blob.dtype), bytes, blob.scale, out);
    });
  }

  void check_count(const BlobRecord& blob) const {
    const FoundLayer found = find_layer(network_, blob.path);
    if (found.layer == nullptr || !found.suffix.empty()) return;
    const LoomDType stored = blob.native ? parse_loom_dtype(blob.dtype) : LoomDType::float32;
    const auto count = loom_weight_count(*found.layer);
    const std::uint64_t there = loom_element_count(stored, blob.length);
    if (count && there >= *count) return;
    throw FormatError(ErrorCode::inconsistent, "fewer weights than the layer has",
                      {.field = "length",
                       .value = std::to_string(there),
                       .bound = count ? std::to_string(*count) : "a number of weights"});
  }

  OpenFile file_;
  LoomNetwork network_;  ///< loaded, without weights: what says how many weights a layer has
  ReadLimits limits_;
  bool dequantize_;
};

}  // namespace
}  // namespace loom

namespace loom {
namespace {

// Any object reads as a network of nothing, and any file may be called .json.
void refuse_other_objects(const Document& document) {
  const LoomNetwork& network = document.network;
  const bool is_nothing = network.layers.empty() && network.depth == 0 && network.rows == 0 &&
                          network.cols == 0 && network.layers_per_cell == 0;
  if (!is_nothing || document.unknown.empty()) return;
  throw FormatError(ErrorCode::bad_value, "an object that is no network of loom",
                    {.section = "checkpoint",
                     .value = list_names(document.unknown),
                     .bound = "depth, rows, cols, layers_per_cell and layers"});
}

}  // namespace
}  // namespace loom

std::shared_ptr<const OpenedFile> open_entity_file(const io::InputFile& input,
                                                   const OpenOptions& options) {
  const EntityFile file = EntityAccess::open(input, options.chain.read);
  loom::OpenFile open{
      .kind = loom::LoomFileKind::entity,
      .name = input.path().string(),
      .version = "1",
      .bytes = file.file_bytes(),
      .payload = file.payload_offset(),
      .document = {.network = file.header(), .blobs = {}, .unknown = file.unknown_keys()},
      .bytes_of = [file](std::size_t i) { return file.blob_bytes(i); }};
  for (const EntityBlob& blob : file.blobs()) {
    open.document.blobs.push_back({.path = blob.path,
                                   .dtype = blob.dtype,
                                   .scale = blob.scale,
                                   .native = blob.native,
                                   .offset = blob.offset,
                                   .length = blob.length});
  }
  return std::make_shared<loom::OpenedLoom>(std::move(open), options);
}

std::shared_ptr<const OpenedFile> open_loom_json_file(const io::InputFile& input,
                                                      const OpenOptions& options) {
  const auto& file = input.whole(options.chain.read.input.access, options.chain.read.work.cancel);
  const ByteSpan bytes = file->bytes();
  const ReadLimits& limits = options.chain.read.input.limits;
  loom::OpenFile open{.kind = loom::LoomFileKind::checkpoint, .name = input.path().string()};
  open.bytes = bytes.size();
  std::vector<StoredBytes> stored;
  with_path(open.name, [&] {
    io::check_file_bytes("checkpoint", bytes.size(), limits);
    open.document.network = loom::parse_checkpoint(
        {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, limits, open.document.unknown);
    loom::refuse_other_objects(open.document);
    loom::take_weights(open.document.network, open.document.blobs, stored);
  });
  open.bytes_of = [stored = std::move(stored)](std::size_t i) { return stored[i]; };
  return std::make_shared<loom::OpenedLoom>(std::move(open), options);
}

}  // namespace thalia::formats
