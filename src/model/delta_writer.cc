// Saving a delta: one pass over the state in the order of the file, each tensor settled and stored
// before the next one is asked for.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "codec/chunk_codec.h"
#include "container/carried_tensor.h"
#include "container/check_options.h"
#include "container/delta_prefix.h"
#include "container/draft.h"
#include "container/payload_store.h"
#include "container/seal.h"
#include "container/short_name.h"
#include "format/payload.h"
#include "io/atomic_file.h"
#include "io/posix_file.h"
#include "model/delta_access.h"
#include "model/delta_change.h"
#include "model/tensor_chain.h"

namespace thalia {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kStreamed = 1 << 20;  // of a difference, made at once
// A list may take this much more than the samples promised before it is given up.
constexpr double kListSlack = 2;
constexpr std::uint64_t kSmallList = 64 << 10;

SaveOptions save_options(const DeltaOptions& options) {
  SaveOptions save;
  save.checksum = options.checksum;
  save.leaves = options.leaves;
  save.compression = options.compression;
  save.compression_level = options.compression_level;
  save.chunk_bytes = options.chunk_bytes;
  save.timestamp = options.timestamp;
  save.file_uuid = options.file_uuid;
  save.durability = options.durability;
  save.io = IoMode::buffered;  // what is written is small beside what is read
  save.memory_bytes = options.memory_bytes;
  save.threads = options.threads;
  save.cancel = options.cancel;
  container::check_options(save);
  if (!(options.threshold >= 0) || std::isinf(options.threshold)) {
    fail_argument(ErrorCode::bad_argument, "threshold", fmt::format("{}", options.threshold),
                  "0 or more, and finite");
  }
  return save;
}

// From the target's folder to the base, where there is a way; else absolute.
std::string base_path(const fs::path& base, const fs::path& target) {
  const fs::path absolute = fs::weakly_canonical(base);
  const fs::path folder = fs::weakly_canonical(target).parent_path();
  const fs::path relative = absolute.lexically_relative(folder);
  return (relative.empty() ? absolute : relative).generic_string();
}

class DeltaWriter {
 public:
  DeltaWriter(const DeltaState& state, const ChainReader& base, const fs::path& target,
              const DeltaOptions& options)
      : state_(state),
        base_(DeltaAccess::files(base)),
        options_(options),
        save_(save_options(options)) {
    for (const fs::path& path : base.paths()) {
      std::error_code unknown;
      if (!fs::equivalent(path, target, unknown)) continue;
      throw UsageError(ErrorCode::bad_argument, "a delta cannot replace a file that it is based on",
                       {.path = target.string(), .field = "target"});
    }
    const io::FileBytes& mapping = base_.file(0).mapping();
    result_.base_bytes = mapping.begin() + mapping.bytes().size();
    result_.depth = base.depth() + 1;
  }

  DeltaResult run(const fs::path& target) {
    const auto start = Clock::now();
    declare();
    io::AtomicFile file(target, {.durability = options_.durability});
    const std::vector<std::byte> prefix = build_prefix(file.path());
    draft_.delta = {.container_offset = prefix.size(),
                    .base_checksum = base_checksum(),
                    .base_step = base_.file(0).header().training_steps};
    io::pwrite_all(file.fd(), 0, prefix, file.path());
    container::PayloadStore store(draft_, file.fd(), file.path(), save_);
    store_ = &store;
    for (const std::uint32_t id : store.layout().file_order()) {
      stop_if_cancelled(options_.cancel);
      store_tensor(id);
    }
    store.finish();
    const SaveResult saved = container::seal_file(file, draft_, store, save_);
    result_.file_bytes = prefix.size() + saved.file_bytes;
    result_.regions = saved.regions;
    result_.tensors = saved.tensors;
    result_.closing_checksum = saved.closing_checksum;
    note_changes();
    result_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return std::move(result_);
  }

 private:
  struct Source {
    const DeltaTensorSource* tensor;
    model::TensorKey key;
  };

  void declare() {
    draft_.set_metadata(state_.metadata_json);
    draft_.training_steps = state_.training_steps;
    for (const DeltaRegionSource& region : state_.regions) {
      const std::uint32_t id = draft_.add_region(region.spec);
      for (const DeltaTensorSource& tensor : region.tensors) {
        draft_.add_tensor(id, tensor.spec, {}, true);
        add_source(
            tensor,
            {.region = region.spec.name, .name = tensor.spec.name, .source = {}, .target = {}});
      }
    }
    for (const DeltaConnectionSource& connection : state_.connections) declare(connection);
    for (const container::DraftTensor& tensor : draft_.tensors)
      result_.logical_bytes += tensor.logical_length;
  }

  void declare(const DeltaConnectionSource& connection) {
    draft_.add_connection(connection.source, connection.target);
    const auto matrix = [](const DeltaTensorSource& source, Role role) {
      container::DraftTensor tensor;
      tensor.spec = source.spec;
      tensor.spec.role = role;
      container::check_codes(tensor.spec);
      const auto length =
          format::payload_length(tensor.spec.encoding, tensor.spec.dtype, tensor.spec.shape,
                                 tensor.spec.nnz, tensor.spec.wide_indices);
      if (!length) {
        fail_argument(ErrorCode::bad_argument, "connection", tensor.spec.shape.to_string(),
                      "a matrix that the format has");
      }
      tensor.logical_length = *length;
      tensor.streamed = *length != 0;
      return tensor;
    };
    std::optional<container::DraftTensor> delays;
    if (connection.delays) delays = matrix(*connection.delays, Role::other);
    container::set_matrices(draft_, matrix(connection.weights, Role::weights), std::move(delays));
    model::TensorKey key{.region = {},
                         .name = {},
                         .source = container::short_name_string(connection.source),
                         .target = container::short_name_string(connection.target)};
    add_source(connection.weights, key);
    key.delays = true;
    if (connection.delays) add_source(*connection.delays, key);
  }

  void add_source(const DeltaTensorSource& tensor, model::TensorKey key) {
    if (!tensor.load) {
      fail_argument(ErrorCode::bad_argument, "load",
                    fmt::format("'{}' without it", printable(tensor.spec.name)),
                    "a function that gives the tensor");
    }
    sources_.push_back({&tensor, std::move(key)});
  }

  Digest256 base_checksum() const {
    Digest256 out;
    std::memcpy(out.bytes, base_.file(0).closing_checksum().data(), sizeof out.bytes);
    return out;
  }

  std::vector<std::byte> build_prefix(const fs::path& target) const {
    const detail::OpenFile& base = base_.file(0);
    const std::string path = base_path(base.mapping().path(), target);
    if (path.size() > format::kMaxNameLength) {
      fail_argument(ErrorCode::bad_argument, "base", fmt::format("a path of {} bytes", path.size()),
                    std::to_string(format::kMaxNameLength));
    }
    format::DeltaHeader header{};
    const Digest256 checksum = base_checksum();
    std::memcpy(header.base_checkpoint_hash, checksum.bytes, sizeof checksum.bytes);
    header.base_step = base.header().training_steps;
    header.current_step = state_.training_steps;
    format::DeltaReference reference{};
    reference.base_length = base.header().file_length;
    reference.base_generation = base.header().generation;
    std::memcpy(reference.base_uuid, base.header().file_uuid, sizeof reference.base_uuid);
    reference.depth = result_.depth;
    return container::build_delta_prefix(header, reference, path);
  }

  void store_tensor(std::uint32_t id) {
    const Source& source = sources_[id];
    const std::uint64_t length = draft_.tensors[id].logical_length;
    try {
      settle(id, source);
    } catch (Error& error) {
      error.add_region(printable(source.key.region));
      error.add_tensor(printable(source.tensor->spec.name));
      throw;
    }
    done_ += length;
    if (options_.progress) options_.progress(done_, result_.logical_bytes);
  }

  static TensorLayout layout_of(const TensorSpec& spec) {
    return {spec.dtype, spec.shape, spec.encoding, spec.nnz, spec.wide_indices};
  }

  void settle(std::uint32_t id, const Source& source) {
    const TensorLayout layout = layout_of(draft_.tensors[id].spec);
    std::optional<model::TensorChain> chain = model::TensorChain::find(base_, 0, source.key);
    const bool based = chain && model::can_be_fitted(chain->result().layout, layout);
    const bool alike = based && chain->result().layout == layout;
    if (alike && source.tensor->content_hash == chain->result().content_hash)
      return store_same(id, *chain);

    const Tensor tensor = source.tensor->load();
    if (tensor.layout() != layout) {
      fail_argument(ErrorCode::size_mismatch, "load",
                    fmt::format("{} {}", dtype_name(tensor.dtype()), tensor.shape().to_string()),
                    fmt::format("{} {}, and encoding and nnz of the spec", dtype_name(layout.dtype),
                                layout.shape.to_string()));
    }
    if (!based) return store_whole(id, tensor.bytes());
    const integrity::ContentDigest digest =
        integrity::content_digest(tensor.bytes(), options_.threads);
    if (alike && digest.hash == chain->result().content_hash) return store_same(id, *chain);
    if (tensor.bytes().empty()) return store_whole(id, {});
    const model::FittedBase base(*std::move(chain), layout.shape, options_.threads);
    store_change(id, tensor.bytes(), digest, base);
  }

  void store_same(std::uint32_t id, const model::TensorChain& base) {
    container::DraftTensor& draft = draft_.tensors[id];
    become(draft, Encoding::same_as_base, {base.crc32(), base.result().content_hash}, base);
    draft.logical_length = 0;
    draft.streamed = false;
    draft.digest = integrity::content_digest({}, 1);
    ++result_.same;
  }

  void store_whole(std::uint32_t id, ByteSpan bytes) {
    if (!bytes.empty()) store_->write(id, bytes);
    ++result_.whole;
    changed_.insert(draft_.tensors[id].region);
  }

  // The samples say which ways are worth a look; a list is known when it is made.
  void store_change(std::uint32_t id, ByteSpan bytes, integrity::ContentDigest digest,
                    const model::FittedBase& base) {
    const TensorSpec& spec = draft_.tensors[id].spec;
    const bool dense = spec.encoding == Encoding::dense;
    const bool lossy = options_.threshold > 0 && dense && spec.role == Role::weights &&
                       model::has_threshold(spec.dtype);
    const bool listable = dense && !dtype_is_packed(spec.dtype);
    const unsigned width = listable ? dtype_bits(spec.dtype) / 8 : 1;
    const model::Change change(bytes, base, {lossy ? options_.threshold : 0, spec.dtype}, options_);
    const auto estimate = change.estimate(width);
    const double least = std::min(estimate.difference, estimate.whole);
    if (lossy || (listable && estimate.list <= kListSlack * least)) {
      const double most =
          std::min(kListSlack * estimate.list_raw + kSmallList, static_cast<double>(bytes.size()));
      const auto scan = change.scan(width, listable ? static_cast<std::uint64_t>(most) : 0);
      if (lossy) digest = scan.digest;
      if (digest.hash == base.base().result().content_hash &&
          base.base().result().layout == layout_of(spec))
        return store_same(id, base.base());
      if (scan.list && list_bytes(*scan.list, estimate, width) <= least)
        return store_list(id, *scan.list, digest, base.base());
    }
    if (estimate.whole <= estimate.difference) return store_whole(id, bytes);
    store_difference(id, change, digest, base.base());
  }

  // As the samples shrank; what they did not meet at all is few elements, and is taken as it is.
  static double list_bytes(const model::ChangeList& list, const model::Change::Estimate& estimate,
                           unsigned width) {
    const double raw = static_cast<double>(list.count * (2 + width));
    return estimate.list_raw > 0 ? raw * std::min(1.0, estimate.list / estimate.list_raw) : raw;
  }

  void store_list(std::uint32_t id, const model::ChangeList& list,
                  const integrity::ContentDigest& digest, const model::TensorChain& base) {
    container::DraftTensor& draft = draft_.tensors[id];
    const auto parts = *format::sparse_delta_parts(draft.spec.dtype, draft.spec.shape, list.count);
    become(draft, Encoding::sparse_delta, digest, base);
    draft.spec.nnz = list.count;
    draft.logical_length = parts.length;
    std::vector<std::uint64_t> pointers{0};
    pointers.reserve(parts.blocks + 1);
    for (const auto& part : list.parts) {
      for (const std::uint64_t count : part.counts) pointers.push_back(pointers.back() + count);
    }
    write(id, as_byte_span(pointers));
    for (const auto& part : list.parts) write(id, as_byte_span(part.positions));
    const std::uint64_t padded = parts.values.offset;
    write(id,
          container::zero_bytes().first(padded - parts.positions.offset - parts.positions.length));
    for (const auto& part : list.parts) write(id, part.values);
    ++result_.lists;
    result_.listed_elements += list.count;
    changed_.insert(draft.region);
  }

  void store_difference(std::uint32_t id, const model::Change& change,
                        const integrity::ContentDigest& digest, const model::TensorChain& base) {
    container::DraftTensor& draft = draft_.tensors[id];
    become(draft, Encoding::xor_base, digest, base);
    if (options_.compression == format::Codec::store) draft.codec = format::Codec::zstd;
    std::vector<std::byte> piece;
    for (std::uint64_t at = 0; at < draft.logical_length; at += piece.size()) {
      stop_if_cancelled(options_.cancel);
      piece.resize(std::min(kStreamed, draft.logical_length - at));
      change.difference(at, piece);
      store_->write(id, piece);
    }
    ++result_.differences;
    changed_.insert(draft.region);
  }

  void write(std::uint32_t id, ByteSpan bytes) {
    if (!bytes.empty()) store_->write(id, bytes);
  }

  // From what comes out to what is stored; the length stays.
  static void become(container::DraftTensor& draft, Encoding encoding,
                     const integrity::ContentDigest& digest, const model::TensorChain& base) {
    format::DeltaTensor out{};
    out.encoding = static_cast<std::uint8_t>(draft.spec.encoding);
    out.flags = draft.spec.wide_indices ? std::uint8_t{1} : std::uint8_t{0};
    out.crc32 = digest.crc32;
    out.logical_length = draft.logical_length;
    out.nnz = draft.spec.nnz;
    const Digest128& hash = base.result().content_hash;
    std::memcpy(out.content_hash, digest.hash.bytes, sizeof out.content_hash);
    std::memcpy(out.base_content_hash, hash.bytes, sizeof out.base_content_hash);
    draft.delta = out;
    draft.spec.encoding = encoding;
    draft.spec.nnz = 0;
    draft.spec.wide_indices = false;
  }

  // A region changed too where it lost a tensor.
  void note_changes() {
    const detail::OpenFile& base = base_.file(0);
    std::unordered_set<std::string_view> names;
    for (std::uint32_t r = 0; r < draft_.regions.size(); ++r) {
      const container::DraftRegion& region = draft_.regions[r];
      names.insert(region.spec.name);
      const auto found = base.find_region(region.spec.name);
      bool changed = changed_.contains(r) || !found;
      if (!changed) changed = lost_tensor(base.region_view(*found), region);
      if (changed) result_.changed_regions.push_back(region.spec.name);
    }
    for (std::uint32_t r = 0; r < base.region_count(); ++r) {
      const RegionView region = base.region_view(r);
      if (!names.contains(region.name())) result_.removed_regions.emplace_back(region.name());
    }
  }

  static bool lost_tensor(const RegionView& base, const container::DraftRegion& region) {
    for (std::uint32_t t = 0; t < base.tensor_count(); ++t) {
      if (!region.tensor_names.contains(std::string(base.tensor(t).name()))) return true;
    }
    return false;
  }

  const DeltaState& state_;
  const model::FileChain& base_;
  const DeltaOptions& options_;
  const SaveOptions save_;
  container::Draft draft_;
  std::vector<Source> sources_;  ///< by tensor of the draft
  container::PayloadStore* store_ = nullptr;
  std::unordered_set<std::uint32_t> changed_;  ///< regions; the connectivity's number among them
  std::uint64_t done_ = 0;
  DeltaResult result_;
};

}  // namespace

DeltaResult write_delta(const DeltaState& state, const ChainReader& base,
                        const std::filesystem::path& target, const DeltaOptions& options) {
  try {
    return DeltaWriter(state, base, target, options).run(target);
  } catch (Error& error) {
    error.add_path(target.string());
    throw;
  }
}

}  // namespace thalia
