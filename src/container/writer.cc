#include "thalia/writer.h"

#include <chrono>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "codec/chunk_codec.h"
#include "container/draft.h"
#include "container/payload_digest.h"
#include "container/payload_store.h"
#include "container/seal.h"
#include "format/payload.h"
#include "io/atomic_file.h"
#include "thalia/format/constants.h"

namespace thalia {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_options(const SaveOptions& options) {
  const auto between = [](const char* field, std::uint64_t value, std::uint64_t low,
                          std::uint64_t high) {
    if (value < low || value > high) {
      fail_argument(ErrorCode::bad_argument, field, std::to_string(value),
                    fmt::format("{} to {}", low, high));
    }
  };
  between("checksum", static_cast<std::uint32_t>(options.checksum), 0, 3);
  between("leaves", static_cast<std::uint8_t>(options.leaves), 1, 2);
  between("block_log2", options.block_log2, format::kMinBlockLog2, format::kMaxBlockLog2);
  between("chunk_bytes", options.chunk_bytes, 4096, 1u << 30);
  between("queue_depth", options.queue_depth, 1, 1024);
  between("memory_bytes", options.memory_bytes, 4 << 20, UINT64_MAX);
  if (options.chunk_bytes % 4096 != 0) {
    fail_argument(ErrorCode::bad_argument, "chunk_bytes", std::to_string(options.chunk_bytes),
                  "a multiple of 4096");
  }
  if (options.compression != format::Codec::store && options.compression != format::Codec::zstd &&
      options.compression != format::Codec::lz4) {
    fail_argument(ErrorCode::bad_argument, "compression",
                  std::to_string(static_cast<int>(options.compression)), "store, zstd or lz4");
  }
  const auto [lowest, highest, standard] = codec::level_range(options.compression);
  if (options.compression_level != 0 &&
      (options.compression_level < lowest || options.compression_level > highest)) {
    fail_argument(ErrorCode::bad_argument, "compression_level",
                  std::to_string(options.compression_level),
                  fmt::format("{} to {}, or 0 for {}", lowest, highest, standard));
  }
}

}  // namespace

class Writer::Impl {
 public:
  Impl(const std::filesystem::path& path, const SaveOptions& options)
      : options_(options), file_(path, {.durability = options.durability}) {}

  container::Draft& declare(const char* what) {
    require_open();
    if (store_) {
      throw UsageError(ErrorCode::wrong_state, fmt::format("{} after a payload was streamed", what),
                       {.path = file_.path().string()});
    }
    return draft_;
  }

  /// Runs a step; whatever it throws gets the path, and ends the save.
  template <typename Step>
  auto step(Step action) {
    require_open();
    try {
      return action();
    } catch (Error& error) {
      error.add_path(file_.path().string());
      abandon();
      throw;
    } catch (...) {
      abandon();
      throw;
    }
  }

  void write(std::uint32_t tensor, ByteSpan piece) {
    step([&] {
      end_declarations();
      store_->write(tensor, piece);
    });
  }

  SaveResult commit() {
    return step([&] {
      const auto begun = started_.value_or(Clock::now());
      end_declarations();
      container::digest_borrowed_payloads(draft_, options_.threads);
      store_->finish();
      SaveResult result = container::seal_file(file_, draft_, store_->layout(), options_);
      result.seconds = seconds_since(begun);
      open_ = false;
      return result;
    });
  }

 private:
  void require_open() const {
    if (!open_) {
      throw UsageError(ErrorCode::wrong_state, "the writer was committed, or a step failed",
                       {.path = file_.path().string()});
    }
  }

  void end_declarations() {
    if (store_) return;
    started_ = Clock::now();
    draft_.check_complete();
    store_ = std::make_unique<container::PayloadStore>(
        draft_, container::ChunkTarget{.fd = file_.fd(),
                                       .path = file_.path(),
                                       .codec = options_.compression,
                                       .level = options_.compression_level,
                                       .chunk_bytes = options_.chunk_bytes,
                                       .threads = options_.threads,
                                       .cancel = options_.cancel});
  }

  void abandon() noexcept {
    open_ = false;
    file_.discard();
  }

  SaveOptions options_;
  io::AtomicFile file_;
  container::Draft draft_;
  std::unique_ptr<container::PayloadStore> store_;  ///< from the end of the declarations on
  std::optional<Clock::time_point> started_;
  bool open_ = true;
};

Writer::Writer(const std::filesystem::path& path, const SaveOptions& options) {
  check_options(options);
  impl_ = std::make_unique<Impl>(path, options);
}
Writer::~Writer() = default;
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;

void Writer::set_metadata(std::string json) {
  impl_->declare("set_metadata").set_metadata(std::move(json));
}

void Writer::set_training_steps(std::uint64_t steps) {
  impl_->declare("set_training_steps").training_steps = steps;
}

RegionId Writer::add_region(RegionSpec spec) {
  return {impl_->declare("add_region").add_region(std::move(spec))};
}

TensorId Writer::add_tensor(RegionId region, TensorSpec spec) {
  return {impl_->declare("add_tensor").add_tensor(region.value, std::move(spec), {}, true)};
}

TensorId Writer::add_tensor(RegionId region, TensorSpec spec, ByteSpan payload) {
  return {impl_->declare("add_tensor").add_tensor(region.value, std::move(spec), {payload}, false)};
}

namespace {

// The arrays of a sparse payload with the padding that stands between them.
std::vector<ByteSpan> with_padding(
    std::initializer_list<std::pair<format::Extent, ByteSpan>> arrays) {
  std::vector<ByteSpan> pieces;
  std::uint64_t at = 0;
  for (const auto& [extent, bytes] : arrays) {
    if (bytes.size() != extent.length) {
      fail_argument(ErrorCode::size_mismatch, "payload",
                    fmt::format("an array of {} bytes", bytes.size()),
                    std::to_string(extent.length));
    }
    pieces.push_back(container::zero_bytes().first(extent.offset - at));
    pieces.push_back(bytes);
    at = extent.offset + extent.length;
  }
  return pieces;
}

}  // namespace

template <typename Index>
TensorId Writer::add_csr(RegionId region, TensorSpec spec, CsrArrays<Index> arrays) {
  spec.encoding = Encoding::csr;
  spec.nnz = arrays.column_indices.size();
  spec.wide_indices = sizeof(Index) == 8;
  container::check_codes(spec);
  std::vector<ByteSpan> pieces;
  if (const auto parts = format::csr_parts(spec.dtype, spec.shape, spec.nnz, spec.wide_indices)) {
    pieces = with_padding({{parts->row_pointers, as_byte_span(arrays.row_pointers)},
                           {parts->indices, as_byte_span(arrays.column_indices)},
                           {parts->values, arrays.values}});
  }
  return {impl_->declare("add_csr").add_tensor(region.value, std::move(spec), std::move(pieces),
                                               false)};
}

template <typename Index>
TensorId Writer::add_coo(RegionId region, TensorSpec spec, CooArrays<Index> arrays) {
  spec.encoding = Encoding::coo;
  spec.nnz = spec.shape.rank() == 0 ? 0 : arrays.indices.size() / spec.shape.rank();
  spec.wide_indices = sizeof(Index) == 8;
  container::check_codes(spec);
  std::vector<ByteSpan> pieces;
  if (const auto parts = format::coo_parts(spec.dtype, spec.shape, spec.nnz, spec.wide_indices)) {
    pieces = with_padding(
        {{parts->indices, as_byte_span(arrays.indices)}, {parts->values, arrays.values}});
  }
  return {impl_->declare("add_coo").add_tensor(region.value, std::move(spec), std::move(pieces),
                                               false)};
}

template TensorId Writer::add_csr(RegionId, TensorSpec, CsrArrays<std::uint32_t>);
template TensorId Writer::add_csr(RegionId, TensorSpec, CsrArrays<std::uint64_t>);
template TensorId Writer::add_coo(RegionId, TensorSpec, CooArrays<std::uint32_t>);
template TensorId Writer::add_coo(RegionId, TensorSpec, CooArrays<std::uint64_t>);

std::uint32_t Writer::add_connection(std::string_view source_region,
                                     std::string_view target_region) {
  return impl_->declare("add_connection").add_connection(source_region, target_region);
}

TensorId Writer::add_connection_weights(std::uint32_t connection, TensorSpec spec,
                                        ByteSpan payload) {
  return {impl_->declare("add_connection_weights")
              .add_connection_weights(connection, std::move(spec), payload)};
}

TensorId Writer::add_connection_delays(std::uint32_t connection, TensorSpec spec,
                                       ByteSpan payload) {
  return {impl_->declare("add_connection_delays")
              .add_connection_delays(connection, std::move(spec), payload)};
}

void Writer::write(TensorId tensor, ByteSpan piece) {
  impl_->write(tensor.value, piece);
}

SaveResult Writer::commit() {
  return impl_->commit();
}

}  // namespace thalia
