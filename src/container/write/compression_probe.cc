// Decides by measuring, on this machine, with these payloads and this target: fixed rules would be
// wrong for most disks. What it costs is limited: 2 MiB of samples, 16 MiB written, and nothing at
// all for saves that are small, not synced, or in memory. docs/contribute/design.md, "Compress
// where it pays".
#include "container/write/compression_probe.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/parallel.h"
#include "base/stopwatch.h"
#include "codec/chunk/codec.h"
#include "container/plan/chunk_layout.h"
#include "container/plan/piece_range.h"
#include "container/write/extent_writer.h"
#include "container/write/file_pieces.h"
#include "io/direct/direct_file.h"
#include "io/file/posix_file.h"

namespace thalia::container {
namespace {

// A smaller save is over before a decision has paid for itself.
constexpr std::uint64_t kSmallest = 16 << 20;
constexpr std::uint64_t kSamples = 16;
constexpr std::uint64_t kSampleBytes = 128 * 1024;
// Samples begin on multiples of this, so that no element of any dtype is cut.
constexpr std::uint64_t kWholeElements = 64;
// Written to measure the target. Takes less than a second on a disk of 16 MiB a second.
constexpr std::uint64_t kWritten = 16 << 20;
// What compressing has to save at least, of size and of time.
constexpr double kWorthwhile = 0.95;

struct Sample {
  codec::ElementLayout layout;
  std::vector<std::byte> bytes;
};

// Evenly from all borrowed payloads, as if they were one.
std::vector<Sample> take_samples(const FilePlan& plan, std::uint64_t total) {
  std::vector<Sample> out;
  std::uint64_t wanted = 0;  // in all payloads joined
  std::uint64_t at = 0;
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.streamed || tensor.in_chunks) continue;
    const std::uint64_t end = at + tensor.logical_length;
    for (; wanted < end; wanted += total / kSamples) {
      const std::uint64_t from = (wanted - at) / kWholeElements * kWholeElements;
      const std::uint64_t to = std::min(from + kSampleBytes, tensor.logical_length);
      Sample& sample = out.emplace_back();
      sample.layout = chunk_layout(tensor, from, to);
      for_each_part(tensor.pieces, from, to, [&](ByteSpan part) {
        sample.bytes.insert(sample.bytes.end(), part.begin(), part.end());
      });
    }
    at = end;
  }
  return out;
}

Trial measure(Codec codec, int level, std::span<const Sample> samples) {
  std::vector<std::byte> stored;
  // Once before the watch starts: memory and contexts are made once a thread, and are no part of
  // the speed.
  codec::encode_chunk(codec, level, samples.front().layout, samples.front().bytes, stored);
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;
  const Stopwatch watch;
  for (const Sample& sample : samples) {
    codec::encode_chunk(codec, level, sample.layout, sample.bytes, stored);
    raw_bytes += sample.bytes.size();
    stored_bytes += stored.size();
  }
  const double size = static_cast<double>(raw_bytes);
  return {codec, level, size / static_cast<double>(stored_bytes), size / watch.seconds()};
}

// Bytes a second that become durable, by the way that the save will take.
double target_speed(const SaveOptions& options, std::uint64_t total,
                    std::span<const Sample> samples, int fd, const std::filesystem::path& path) {
  FilePieces image(fd, path);
  ExtentWriter extents(image, total, options);
  WriteQueue queue = extents.make_queue();
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; bytes.size() < extents.extent_bytes(); ++i) {
    const std::vector<std::byte>& next = samples[i % samples.size()].bytes;
    bytes.insert(bytes.end(), next.begin(), next.end());
  }
  bytes.resize(extents.extent_bytes());
  const Stopwatch watch;
  std::uint64_t written = 0;
  for (; written < kWritten; written += bytes.size()) extents.put(written, bytes, queue);
  if (queue) queue->drain();
  io::sync_file(fd, false, path);
  const double seconds = watch.seconds();
  // The save itself begins with an empty file. Nothing of the queue may be in flight then.
  queue.reset();
  io::set_file_size(fd, 0, path);
  return static_cast<double>(written) / seconds;
}

}  // namespace

std::optional<Trial> fastest(std::span<const Trial> trials, double target_speed, unsigned threads) {
  // Compressing on all threads overlaps with writing: the slower of the two is what counts.
  std::optional<Trial> best;
  double least = kWorthwhile / target_speed;  // seconds a raw byte
  for (const Trial& trial : trials) {
    const double seconds =
        std::max(1 / (trial.bytes_per_second * threads), 1 / (trial.ratio * target_speed));
    if (trial.ratio * kWorthwhile < 1 || seconds >= least) continue;
    best = trial;
    least = seconds;
  }
  return best;
}

void choose_codec(SaveOptions& options, const FilePlan& plan, int fd,
                  const std::filesystem::path& path) {
  if (options.compression.codec) return;
  options.compression.codec = Codec::none;
  if (!options.automatic_codec) return;
  std::uint64_t total = 0;
  for (const TensorPlan& tensor : plan.tensors)
    if (!tensor.streamed && !tensor.in_chunks) total += tensor.logical_length;
  // What is not synced goes to memory, which is faster than any of the codecs.
  if (total < kSmallest || options.output.durability == Durability::none || io::is_in_memory(fd))
    return;

  const std::vector<Sample> samples = take_samples(plan, total);
  const std::array trials{
      measure(Codec::packed_exponents, 0, samples),
      measure(Codec::plane_entropy, 0, samples),
      measure(Codec::lz4, 1, samples),
      measure(Codec::zstd, 1, samples),
  };
  if (std::all_of(trials.begin(), trials.end(),
                  [](const Trial& trial) { return trial.ratio * kWorthwhile < 1; }))
    return;
  const double speed = target_speed(options, total, samples, fd, path);
  if (const auto chosen = fastest(trials, speed, resolve_threads(options.work.threads))) {
    options.compression.codec = chosen->codec;
    options.compression.level = chosen->level;
  }
}

}  // namespace thalia::container
