// Compresses tensors on several threads and puts their blocks together in order. A file begins with
// a header that tells the length of all blocks, so blocks are kept until commit(): in a spool, or
// in the caller's vector, where they are shifted at the end to make room.
//
// The calling thread plans tensors, hands out pieces as jobs and collects results in the order in
// which the jobs were submitted. Everything but MckpJob::run() happens on it and needs no lock.
// `block_begin` and `checksum` belong to the block that is being collected. Any call that throws
// ends the writer (Steps), so no file lacks a tensor.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/ordered_pool.h"
#include "base/steps.h"
#include "base/utf8.h"
#include "codec/chunk/codec.h"
#include "codec/frame/zstd_frame.h"
#include "format/little_endian.h"
#include "formats/mckp/block.h"
#include "formats/mckp/content_hash_list.h"
#include "formats/mckp/format.h"
#include "formats/mckp/header.h"
#include "formats/mckp/job.h"
#include "integrity/xxh64.h"
#include "io/output/spool.h"
#include "json/reader.h"
#include "json/writer.h"
#include "state/low_rank/low_rank_change.h"
#include "state/quantize/quantizer.h"
#include "state/value/value_json.h"
#include "thalia/files.h"
#include "thalia/tensor.h"

namespace thalia {
namespace {

using formats::codec_of;
using formats::MckpFooter;
using formats::MckpJob;
using formats::MckpPrelude;

// Some jobs wait and some are finished, so no thread idles while the collector is busy.
constexpr unsigned kJobsPerThread = 3;
constexpr std::uint64_t kDefaultMemory = 256ull << 20;
// What a thread takes: the pieces of its jobs, and what coding one of them needs.
constexpr std::uint64_t kThreadBytes = (kJobsPerThread + 2) * formats::kMckpPiece;
constexpr unsigned kMetadataDepth = 256;
// 256 KiB fit a core's cache, where complete() sums what it has just moved.
constexpr std::uint64_t kMovedPart = 1 << 18;
// The header is short beside the tensors; higher levels gain little.
constexpr int kHeaderLevel = 3;

void check_metadata(const std::string& metadata) {
  try {
    json::check_object(metadata, kMetadataDepth);
  } catch (const FormatError& error) {
    fail_argument(ErrorCode::bad_argument, "metadata", printable(metadata, 60), "a JSON object",
                  error.message());
  }
}

void check_options(const MckpWriteOptions& options) {
  codec::checked_level(codec_of(options), options.compression.level);
  if (options.quantization) {
    check_option("bits", options.quantization->bits, 1, 8);
    for (const auto& [name, bits] : options.quantization->bits_of)
      check_option("bits_of", bits, 1, 8);
  }
  if (options.low_rank) state::check_low_rank(*options.low_rank);
  check_metadata(options.header.metadata);
  if (options.header.previous) check_storage_key(options.header.previous->key);
}

MckpWriteOptions checked(MckpWriteOptions options) {
  check_options(options);
  return options;
}

std::string params_of(const MckpWriteOptions& options, int level) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("algorithm", codec_name(codec_of(options)));
  json.member("level", level).member("byte_grouping", options.byte_grouping).key("quantization");
  if (options.quantization) {
    json.begin_object().member("scheme", "uniform").member("bits", options.quantization->bits);
    json.end_object();
  } else {
    json.null();
  }
  json.end_object();
  return text;
}

// That of what is stored with a loss; of no use where nothing can be.
state::LossyGeneration next_generation_of(const MckpWriteOptions& options) {
  if (!options.low_rank || !options.header.previous) return {};
  const Value metadata = state::parse_json_object(options.header.metadata, {});
  return state::next_generation(state::lossy_generation_of(metadata),
                                options.low_rank->max_generations);
}

unsigned threads_of(const MckpWriteOptions& options) {
  const std::uint64_t most =
      std::max<std::uint64_t>(options.work.memory_bytes.value_or(kDefaultMemory) / kThreadBytes, 1);
  return static_cast<unsigned>(
      std::min<std::uint64_t>(resolve_threads(options.work.threads), most));
}

// What the threads leave of the caller's limit. The rest of the blocks is in a temporary file.
std::uint64_t spool_memory(const MckpWriteOptions& options) {
  const std::uint64_t taken = threads_of(options) * kThreadBytes;
  const std::uint64_t memory = options.work.memory_bytes.value_or(kDefaultMemory);
  return memory - std::min(memory, taken);
}

template <typename T>
ByteSpan bytes_of(const T& structure) {
  return std::as_bytes(std::span(&structure, 1));
}

std::uint64_t block_bytes(const MckpTensor& tensor) {
  return formats::mckp_block_header(tensor.name) + tensor.compressed_size;
}

}  // namespace

struct MckpWriter::Impl {
  Impl(std::filesystem::path to, ByteSink into, std::vector<std::byte>* memory,
       MckpWriteOptions wanted)
      : path(std::move(to)),
        sink(std::move(into)),
        whole(memory),
        options(checked(std::move(wanted))),
        spool(spool_memory(options), temporary_folder()),
        steps("the file", path.string()),
        hashes(options.header.content_digests),
        generation(next_generation_of(options)),
        pool(threads_of(options), std::size_t{kJobsPerThread} * threads_of(options),
             [this](MckpJob& job) { job.run(level_of(job.tensor->stored.method.codec)); }) {}

  std::filesystem::path temporary_folder() const {
    if (!options.temporary_folder.empty()) return options.temporary_folder;
    return path.empty() ? path : folder_of(path);
  }

  // The level that was asked for is one of its codec. Deltas, which are zstd even where the options
  // say otherwise, take the standard level then.
  int level_of(Codec codec) const {
    return codec::checked_level(codec, codec == codec_of(options) ? options.compression.level : 0);
  }

  void submit(const std::shared_ptr<formats::MckpWork>& work, std::uint64_t begin,
              std::uint64_t end) {
    stop_if_cancelled(options.work.cancel);
    // The pool is bounded, and so is the memory: compressing waits for the collector.
    while (pool.full()) collect();
    MckpJob& job = pool.next();
    job.tensor = work;
    job.begin = begin;
    job.end = end;
    pool.submit();
  }

  // Takes the result of the oldest job; waits for it if need be.
  void collect() {
    MckpJob& job = pool.front();
    formats::MckpWork& work = *job.tensor;
    if (job.begin == 0) begin_block(work.stored);
    if (job.begin != job.end && formats::mckp_has_piece_lengths(work.stored.method.codec)) {
      const format::le32 length(static_cast<std::uint32_t>(job.out.size()));
      append(bytes_of(length));
    }
    append(job.out);
    if (job.is_last()) end_block(work);
    // With the last job of a tensor its bytes are let go.
    job.tensor.reset();
    pool.pop();
  }

  void append(ByteSpan bytes) {
    checksum.update(bytes);
    if (whole != nullptr) {
      whole->insert(whole->end(), bytes.begin(), bytes.end());
    } else {
      spool.append(bytes);
    }
  }

  std::uint64_t kept_bytes() const { return whole != nullptr ? whole->size() : spool.size(); }

  // In the caller's vector a block lies where it stays, after room for its header, which is known
  // only at the end.
  void begin_block(const MckpTensor& stored) {
    if (whole != nullptr) whole->resize(whole->size() + formats::mckp_block_header(stored.name));
    block_begin = kept_bytes();
    checksum.reset();
  }

  void end_block(formats::MckpWork& work) {
    MckpTensor& stored = work.stored;
    const std::uint64_t length = formats::mckp_coded_length(stored);
    if (stored.method.codec != Codec::none && kept_bytes() - block_begin >= length) store_raw(work);
    stored.compressed_size = kept_bytes() - block_begin;
    stored.xxh64 = checksum.finish();
    if (whole != nullptr) {
      const std::string header = formats::mckp_block_header_bytes(stored);
      std::memcpy(whole->data() + block_begin - header.size(), header.data(), header.size());
    }
    hashes.add(stored.name, stored.layout(), stored.original_size,
               work.digest.finish(stored, work.tensor.bytes()));
    result.largest_error =
        std::max({result.largest_error, work.digest.largest_error(), work.largest_error});
    ++result.tensors;
    result.original_size += stored.original_size;
    if (stored.method.delta) ++result.delta_tensors;
    if (stored.method.quantized) ++result.quantized_tensors;
    if (stored.method.low_rank) ++result.low_rank_tensors;
    tensors.push_back(stored);
  }

  // A block that did not shrink is stored as it is, even if it was a delta: it needs no base then.
  void store_raw(formats::MckpWork& work) {
    if (whole != nullptr) {
      whole->resize(block_begin);
    } else {
      spool.truncate(block_begin);
    }
    checksum.reset();
    const bool quantized = work.stored.method.quantized;
    work.stored.method = {
        .codec = Codec::none, .quantized = quantized, .sparse = work.stored.method.sparse};
    const std::uint64_t length = formats::mckp_coded_length(work.stored);
    std::vector<std::byte> piece;
    for (std::uint64_t begin = 0; begin < length; begin += formats::kMckpPiece) {
      formats::encode_mckp_piece(work.stored, 0, work.tensor.bytes(), {}, begin,
                                 std::min(length, begin + formats::kMckpPiece), piece);
      append(piece);
    }
  }

  std::vector<std::byte> front();
  MckpFooter footer(const integrity::Xxh64& sum) const;
  void emit(const ByteSink& to);
  void complete();
  MckpHeader header() const;

  std::filesystem::path path;
  ByteSink sink;
  std::vector<std::byte>* whole;  ///< the file, where it stays in memory; else null, and the spool
  MckpWriteOptions options;
  io::Spool spool;
  Steps steps;
  std::unordered_set<std::string> names;
  std::vector<MckpTensor> tensors;
  formats::ContentHashList hashes;
  state::LossyGeneration generation;
  integrity::Xxh64 checksum;  ///< of the block that is being collected
  std::uint64_t block_begin = 0;
  MckpWriteResult result;
  bool is_lossy = false;
  OrderedPool<MckpJob> pool;  ///< destroyed first: its jobs look at the above
};

MckpHeader MckpWriter::Impl::header() const {
  MckpHeader header{options.header, result.original_size, result.content_hash,
                    params_of(options, level_of(codec_of(options)))};
  // Without a delta, the previous file is not needed to read this one.
  if (result.delta_tensors == 0) header.previous.reset();
  return header;
}

// Everything before the blocks. It tells their places, so it is made when all are there.
std::vector<std::byte> MckpWriter::Impl::front() {
  std::uint64_t offset = 0;
  for (MckpTensor& tensor : tensors) {
    tensor.offset = offset;
    offset += block_bytes(tensor);
  }
  const std::string text = formats::make_mckp_header(header(), tensors);
  if (text.size() > formats::kMckpMaxHeader) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "the header becomes too long",
                           {.section = "header",
                            .value = fmt::format("{} bytes", text.size()),
                            .bound = std::to_string(formats::kMckpMaxHeader)});
  }
  std::vector<std::byte> frame;
  codec::zstd_encode(kHeaderLevel, as_byte_span(text), frame, /*with_checksum=*/true);

  std::uint32_t flags = 0;
  if (result.delta_tensors != 0) flags |= formats::kMckpFlagDelta;
  if (result.quantized_tensors != 0) flags |= formats::kMckpFlagQuantized;
  for (const MckpTensor& tensor : tensors) {
    if (tensor.method.plane_width != 0) flags |= formats::kMckpFlagGrouped;
    if (tensor.method.sparse) flags |= formats::kMckpFlagSparse;
    if (tensor.method.low_rank) flags |= formats::kMckpFlagLowRank;
    if (tensor.method.steps) flags |= formats::kMckpFlagSteps;
  }
  MckpPrelude prelude{.magic = {},
                      .version = formats::kMckpVersion,
                      .flags = flags,
                      .header_length = static_cast<std::uint32_t>(frame.size())};
  std::memcpy(prelude.magic, formats::kMckpMagic.data(), sizeof prelude.magic);
  const ByteSpan bytes = bytes_of(prelude);
  frame.insert(frame.begin(), bytes.begin(), bytes.end());
  result.file_bytes = frame.size() + offset + sizeof(MckpFooter);
  return frame;
}

MckpFooter MckpWriter::Impl::footer(const integrity::Xxh64& sum) const {
  std::uint64_t total = 0;
  for (const MckpTensor& tensor : tensors) total += tensor.compressed_size;
  return {.checksum = sum.finish(), .total_compressed_size = total};
}

void MckpWriter::Impl::emit(const ByteSink& to) {
  integrity::Xxh64 sum;
  const auto put = [&](ByteSpan bytes) {
    stop_if_cancelled(options.work.cancel);
    sum.update(bytes);
    to(bytes);
  };
  put(front());
  for (const MckpTensor& tensor : tensors) {
    put(as_byte_span(formats::mckp_block_header_bytes(tensor)));
    spool.take(tensor.compressed_size, put);
  }
  to(bytes_of(footer(sum)));
}

// Shifts the blocks in the caller's vector after the front, part by part from the beginning,
// without a second copy of the file. Each part is summed while it is in the cache.
void MckpWriter::Impl::complete() {
  std::vector<std::byte> carried = front(), next = carried;
  const std::uint64_t shift = carried.size();
  const std::uint64_t end = shift + whole->size();
  // A part must hold all that is carried into it.
  const std::uint64_t part = std::max(kMovedPart, shift);
  whole->resize(result.file_bytes);
  integrity::Xxh64 sum;
  for (std::uint64_t at = 0; at < end; at += part) {
    stop_if_cancelled(options.work.cancel);
    std::byte* const to = whole->data() + at;
    const std::uint64_t length = std::min(part, end - at), kept = std::min(shift, length);
    // What a part gives up at its end is carried to the start of the next one.
    std::memcpy(next.data(), to + length - kept, kept);
    std::memmove(to + kept, to, length - kept);
    std::memcpy(to, carried.data(), kept);
    carried.swap(next);
    sum.update({to, length});
  }
  const MckpFooter after = footer(sum);
  std::memcpy(whole->data() + result.file_bytes - sizeof after, &after, sizeof after);
}

MckpWriter::MckpWriter(std::filesystem::path path, MckpWriteOptions options)
    : impl_(std::make_unique<Impl>(std::move(path), ByteSink(), nullptr, std::move(options))) {}

MckpWriter::MckpWriter(ByteSink sink, MckpWriteOptions options)
    : impl_(std::make_unique<Impl>(std::filesystem::path(), std::move(sink), nullptr,
                                   std::move(options))) {}

MckpWriter::MckpWriter(std::vector<std::byte>& out, MckpWriteOptions options)
    : impl_(std::make_unique<Impl>(std::filesystem::path(), ByteSink(), &out, std::move(options))) {
  out.clear();
}

MckpWriter::~MckpWriter() = default;
MckpWriter::MckpWriter(MckpWriter&&) noexcept = default;
MckpWriter& MckpWriter::operator=(MckpWriter&&) noexcept = default;

void MckpWriter::add(std::string name, Tensor tensor, std::optional<Tensor> base) {
  Impl& impl = *impl_;
  const auto refuse = [&](ErrorCode code, std::string value, std::string bound) {
    throw UsageError(code, {},
                     {.path = impl.path.string(),
                      .field = "name",
                      .tensor = printable(name),
                      .value = std::move(value),
                      .bound = std::move(bound)});
  };
  // Arguments are checked first: a name that is refused here does not end the writer.
  impl.steps.require_open();
  if (!is_valid_utf8(name)) refuse(ErrorCode::bad_argument, "other bytes", "UTF-8");
  if (name.size() > formats::kMckpMaxName)
    refuse(ErrorCode::bad_argument, fmt::format("{} bytes", name.size()),
           std::to_string(formats::kMckpMaxName));
  if (impl.names.contains(name)) refuse(ErrorCode::duplicate, "added before", "");
  try {
    formats::check_mckp_indices(tensor);
  } catch (const FormatError& error) {
    throw UsageError(ErrorCode::bad_argument, error.message(),
                     {.path = impl.path.string(), .field = "indices", .tensor = printable(name)});
  }

  impl.steps.run([&] {
    impl.names.insert(name);
    const auto work =
        formats::plan_mckp_tensor(std::move(name), std::move(tensor),
                                  impl.options.header.previous ? std::move(base) : std::nullopt,
                                  impl.options, impl.generation);
    impl.is_lossy |= work->stored.method.quantized || work->stored.method.low_rank;
    const std::uint64_t length = formats::mckp_coded_length(work->stored);
    std::uint64_t begin = 0;
    do {
      const std::uint64_t end = std::min(length, begin + formats::kMckpPiece);
      impl.submit(work, begin, end);
      begin = end;
      // An empty tensor gets one job too, which makes its block.
    } while (begin < length);
  });
}

bool MckpWriter::is_lossy() const {
  return impl_->is_lossy;
}

void MckpWriter::set_metadata(std::string metadata) {
  check_metadata(metadata);
  impl_->options.header.metadata = std::move(metadata);
}

MckpWriteResult MckpWriter::commit() {
  Impl& impl = *impl_;
  return impl.steps.finish([&] {
    if (impl.options.quantization) {
      for (const auto& [name, bits] : impl.options.quantization->bits_of) {
        if (!impl.names.contains(name)) {
          throw UsageError(
              ErrorCode::not_found, "no such tensor was added",
              {.path = impl.path.string(), .field = "bits_of", .value = printable(name)});
        }
      }
    }
    while (!impl.pool.empty()) {
      stop_if_cancelled(impl.options.work.cancel);
      impl.collect();
    }
    impl.result.content_hash = impl.hashes.finish();
    if (impl.whole != nullptr) {
      impl.complete();
    } else if (impl.path.empty()) {
      impl.emit(impl.sink);
    } else {
      OutputFile out(impl.path, impl.options.output, impl.options.work.cancel);
      impl.emit([&](ByteSpan piece) { out.write(piece); });
      out.commit();
    }
    return impl.result;
  });
}

}  // namespace thalia
