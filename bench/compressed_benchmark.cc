// Compressed checkpoints beside raw ones of the same weights: saving to the disk, synced on both
// sides, and loading, warm and cold, into memory of the caller's. And CheckpointCompressor, in
// memory, beside files of the same codec.
#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "floors.h"
#include "measure/samples.h"
#include "paired.h"
#include "scratch.h"
#include "settings.h"
#include "thalia/formats/compressor.h"
#include "thalia/reader.h"

namespace thalia::bench::compressed_subject {
namespace {

constexpr Codec kCodecs[] = {Codec::packed_exponents, Codec::plane_entropy, Codec::lz4,
                             Codec::zstd};

struct Weights {
  DType dtype;
  std::vector<std::byte> bytes;
};

std::shared_ptr<const Weights> normal_weights(DType dtype, std::uint64_t size) {
  auto out = std::make_shared<Weights>();
  out->dtype = dtype;
  const auto take = [&](const auto& values) {
    const ByteSpan bytes = as_byte_span(values);
    out->bytes.assign(bytes.begin(), bytes.end());
  };
  dtype == DType::f32 ? take(measure::normal_f32(size)) : take(measure::normal_bf16(size));
  return out;
}

// The same weights in a raw file and a compressed one.
class Files {
 public:
  Files(const std::filesystem::path& parent, std::shared_ptr<const Weights> weights, Codec codec)
      : folder_(parent),
        parent_(parent),
        weights_(std::move(weights)),
        codec_(codec),
        target_(weights_->bytes.size()) {
    save_as(Codec::none, Durability::none);
    save_as(codec_, Durability::none);
    const auto size = [&](Codec c) {
      return static_cast<double>(std::filesystem::file_size(path(c)));
    };
    ratio_ = size(Codec::none) / size(codec_);
    measure::settle(parent_);
  }

  Side save(Codec codec, Durability durability) const {
    return {name("save", codec), [=, this] { save_as(codec, durability); }};
  }
  Side load(Codec codec) {
    return {name("load", codec), [=, this] { measure::load(Reader::open(path(codec)), target_); }};
  }
  Codec codec() const { return codec_; }
  std::uint64_t bytes() const { return weights_->bytes.size(); }

  /// Each run starts without its file, with a disk that has nothing left to do, and with memory for
  /// the page cache.
  void clear() const {
    std::filesystem::remove(path(Codec::none));
    std::filesystem::remove(path(codec_));
    ready_to_write(parent_, bytes());
  }
  void drop() const {
    drop_from_cache(path(Codec::none));
    drop_from_cache(path(codec_));
  }

 private:
  std::filesystem::path path(Codec codec) const {
    return folder_ / (codec == Codec::none ? "raw.thalia" : "compressed.thalia");
  }
  std::string name(const char* what, Codec codec) const {
    if (codec == Codec::none) return std::string(what) + ", raw";
    std::ostringstream text;
    text << what << ", " << codec_name(codec) << ", " << std::fixed << std::setprecision(3)
         << ratio_ << "x smaller";
    return text.str();
  }
  void save_as(Codec codec, Durability durability) const {
    measure::save(path(codec), weights_->bytes, weights_->dtype, measure::kTensorBytes,
                  {.compression = {.codec = codec, .level = codec == Codec::zstd ? 1 : 0},
                   .output = {.durability = durability}});
  }

  ScratchFolder folder_;
  std::filesystem::path parent_;
  std::shared_ptr<const Weights> weights_;
  Codec codec_;
  double ratio_ = 1;
  std::vector<std::byte> target_;
};

template <typename Sides, typename Prepare>
void add(PairedSuite& suite, const std::string& name, const std::filesystem::path& folder,
         std::shared_ptr<const Weights> weights, Codec codec, Sides sides, Prepare prepare) {
  suite.add(name, [=] {
    const auto files = std::make_shared<Files>(folder, weights, codec);
    auto [ours, floor] = sides(*files);
    return Comparison{
        .ours = ours, .floor = floor, .bytes = files->bytes(), .prepare = [=] { prepare(*files); }};
  });
}

void add_codec(const Settings& settings, PairedSuite& suite,
               const std::shared_ptr<const Weights>& weights, Codec codec) {
  std::string what = ", ";
  what += dtype_name(weights->dtype);
  what += " weights, ";
  what += codec_name(codec);
  const auto saves = [](Durability durability) {
    return [=](Files& files) {
      return std::pair(files.save(files.codec(), durability), files.save(Codec::none, durability));
    };
  };
  const auto loads = [](Files& files) {
    return std::pair(files.load(files.codec()), files.load(Codec::none));
  };
  add(suite, "save in memory" + what + " beside raw", settings.memory, weights, codec,
      saves(Durability::none), [](const Files& files) { files.clear(); });
  add(suite, "durable save" + what + " beside raw", settings.disk, weights, codec,
      saves(Durability::full), [](const Files& files) { files.clear(); });
  add(suite, "warm load" + what + " beside raw", settings.disk, weights, codec, loads,
      [](const Files&) {});
  add(suite, "cold load" + what + " beside raw", settings.disk, weights, codec, loads,
      [](const Files& files) { files.drop(); });
}

Checkpoint checkpoint_of(const Weights& weights) {
  Checkpoint checkpoint;
  const std::uint64_t width = dtype_bits(weights.dtype) / 8;
  for (ByteSpan left = weights.bytes; !left.empty();) {
    const ByteSpan part = left.first(std::min<std::size_t>(left.size(), measure::kTensorBytes));
    left = left.subspan(part.size());
    checkpoint.tensors["tensor_" + std::to_string(checkpoint.tensors.size())] =
        Tensor::borrow(weights.dtype, {part.size() / width}, part);
  }
  return checkpoint;
}

// Both sides end in memory, and code the same bytes; both hash them.
void add_compressor(const Settings& settings, PairedSuite& suite,
                    const std::shared_ptr<const Weights>& weights, Codec codec) {
  const std::string what = std::string(", ") + std::string(dtype_name(weights->dtype)) +
                           " weights, " + std::string(codec_name(codec));
  suite.add("compress a checkpoint" + what + " beside a save in memory", [=] {
    const auto files = std::make_shared<Files>(settings.memory, weights, codec);
    const Side ours{
        "CheckpointCompressor::compress", [=, checkpoint = checkpoint_of(*weights)] {
          static_cast<void>(
              CheckpointCompressor({.compression = {.codec = codec}}).compress(checkpoint));
        }};
    return Comparison{.ours = ours,
                      .floor = files->save(codec, Durability::none),
                      .bytes = files->bytes(),
                      .prepare = [=] { files->clear(); }};
  });
  suite.add("decompress a checkpoint" + what + " beside a load from memory", [=] {
    const auto files = std::make_shared<Files>(settings.memory, weights, codec);
    const CheckpointCompressor compressor({.compression = {.codec = codec}});
    const auto compressed =
        std::make_shared<const CompressedCheckpoint>(compressor.compress(checkpoint_of(*weights)));
    const Side ours{"CheckpointCompressor::decompress",
                    [=] { static_cast<void>(compressor.decompress(*compressed)); }};
    // The files have to stay as long as they are loaded.
    return Comparison{
        .ours = ours, .floor = files->load(codec), .bytes = files->bytes(), .prepare = [files] {}};
  });
}

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const auto weights = normal_weights(dtype, settings.bytes());
    for (const Codec codec : kCodecs) {
      add_codec(settings, suite, weights, codec);
      add_compressor(settings, suite, weights, codec);
    }
  }
  return false;
}

}  // namespace thalia::bench::compressed_subject
