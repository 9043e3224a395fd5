// Deltas of weights in memory, of which nothing, a twentieth or all changed, against a base that is
// in memory, in a raw file or in a compressed one; beside a comparison and a digest of the same
// bytes, and beside a full save. What counts is the CPU time of all threads.
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "floors.h"
#include "integrity/content_hash.h"
#include "measure/payload.h"
#include "measure/samples.h"
#include "paired.h"
#include "scratch.h"
#include "settings.h"
#include "thalia/state/delta.h"

namespace thalia::bench::change_subject {
namespace {

enum class Changed { nothing, runs, scattered, all };
constexpr Changed kChanges[] = {Changed::nothing, Changed::runs, Changed::scattered, Changed::all};
enum class Base { memory, raw, compressed };
constexpr Base kBases[] = {Base::memory, Base::raw, Base::compressed};

constexpr std::uint64_t kOneIn = 20;         // elements that change
constexpr std::uint64_t kRunBytes = 4096;    // of a run of changed ones
constexpr std::uint64_t kPiece = 256 << 10;  // that the floor compares and digests at a time

const char* name_of(Changed changed) {
  switch (changed) {
    case Changed::nothing:
      return "nothing changed";
    case Changed::runs:
      return "5 % in runs";
    case Changed::scattered:
      return "5 % scattered";
    case Changed::all:
      break;
  }
  return "all changed";
}

const char* name_of(Base base) {
  switch (base) {
    case Base::memory:
      return "in memory";
    case Base::raw:
      return "in a raw file";
    case Base::compressed:
      break;
  }
  return "in a compressed file";
}

struct Weights {
  DType dtype = DType::f32;
  std::vector<std::byte> bytes;

  std::uint64_t width() const { return dtype_bits(dtype) / 8; }
  // The lowest bit of the mantissa: as a small step of training moves it.
  void move(std::uint64_t element) { bytes[element * width()] ^= std::byte{1}; }
};

Weights normal_weights(DType dtype, std::uint64_t size) {
  Weights out{.dtype = dtype};
  const auto take = [&](const auto& values) {
    const ByteSpan bytes = as_byte_span(values);
    out.bytes.assign(bytes.begin(), bytes.end());
  };
  dtype == DType::f32 ? take(measure::normal_f32(size)) : take(measure::normal_bf16(size));
  return out;
}

Weights moved(const Weights& before, Changed changed) {
  Weights out = before;
  const std::uint64_t count = out.bytes.size() / out.width();
  const std::uint64_t run = kRunBytes / out.width();
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool moves = changed == Changed::all ||
                       (changed == Changed::runs && i / run % kOneIn == kOneIn / 2) ||
                       (changed == Changed::scattered && random() % kOneIn == 0);
    if (moves) out.move(i);
  }
  return out;
}

StateSource state_of(const Weights& weights) {
  StateSource out;
  RegionSource& region = out.regions.emplace_back(RegionSource{.spec = {.name = "model"}});
  for (std::uint64_t at = 0, i = 0; at < weights.bytes.size(); at += measure::kTensorBytes, ++i) {
    const ByteSpan part =
        ByteSpan(weights.bytes)
            .subspan(at, std::min<std::uint64_t>(measure::kTensorBytes, weights.bytes.size() - at));
    const Shape shape{part.size() / weights.width()};
    region.tensors.push_back(
        {.spec = {.name = measure::tensor_name(i), .dtype = weights.dtype, .shape = shape},
         .load = [=, dtype = weights.dtype] { return Tensor::borrow(dtype, shape, part); }});
  }
  return out;
}

// Two states, and the first of them as a file.
class States {
 public:
  States(const Settings& settings, std::shared_ptr<const Weights> before, Changed changed,
         Base base)
      : before_(std::move(before)),
        now_(moved(*before_, changed)),
        base_(base),
        disk_(settings.disk),
        memory_(settings.memory),
        copy_(before_->bytes) {
    SaveOptions options{.output = {.durability = Durability::none}};
    if (base == Base::compressed) options.compression.codec = Codec::plane_entropy;
    SaveResult result =
        measure::save(file(), before_->bytes, before_->dtype, measure::kTensorBytes, options);
    saved_ = {.path = file(),
              .identity = result.identity,
              .state = state_of(*before_),
              .digests = std::move(result.digests)};
    measure::settle(settings.disk);
  }

  std::uint64_t bytes() const { return now_.bytes.size(); }

  Side delta() const {
    return {"delta", [this] {
              const DeltaOptions options{.save = {.output = {.durability = Durability::none}}};
              const auto target = memory_ / "delta.thalia";
              base_ == Base::memory
                  ? write_delta(state_of(now_), saved_, target, options)
                  : write_delta(state_of(now_), ChainReader::open(file()), target, options);
            }};
  }
  Side full_save() const {
    return {"full save",
            [this] { measure::save(memory_ / "full.thalia", now_.bytes, now_.dtype); }};
  }
  // The bytes are equal, so that all are compared. They come in pieces, so that what was compared
  // is digested from the cache.
  Side compare_and_digest() const {
    return {"memcmp, CRC-32 and XXH3-128", [this] {
              std::uint64_t equal = 0;
              integrity::ContentHasher hasher;
              for (std::uint64_t at = 0; at < bytes(); at += kPiece) {
                const std::uint64_t length = std::min(kPiece, bytes() - at);
                equal += is_equal(at, length);
                hasher.update(ByteSpan(copy_).subspan(at, length));
              }
              found_ = equal + hasher.crc32();
            }};
  }
  Side compare() const {
    return {"memcmp", [this] { found_ = is_equal(0, bytes()); }};
  }
  Side memory_copy() {
    return {"memcpy", [this] { copy(before_->bytes, copy_); }};
  }

 private:
  bool is_equal(std::uint64_t at, std::uint64_t length) const {
    return std::memcmp(before_->bytes.data() + at, copy_.data() + at, length) == 0;
  }
  std::filesystem::path file() const { return disk_ / "base.thalia"; }

  std::shared_ptr<const Weights> before_;
  Weights now_;
  Base base_;
  ScratchFolder disk_;
  ScratchFolder memory_;
  std::vector<std::byte> copy_;
  SavedState saved_;
  mutable volatile std::uint64_t found_ = 0;
};

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  const std::string size = settings.smoke ? "smoke" : std::to_string(settings.mib) + " MiB";
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto before = std::make_shared<const Weights>(normal_weights(dtype, settings.bytes()));
    const std::string what = size + " of " + std::string(dtype_name(dtype)) + ", ";
    using Sides = std::function<std::pair<Side, Side>(States&)>;
    const auto add = [&](const std::string& name, Changed changed, Base base, const Sides& sides) {
      suite.add(what + name, [=] {
        const auto states = std::make_shared<States>(settings, before, changed, base);
        const auto [ours, floor] = sides(*states);
        // The sides borrow the states, which go with what prepares them.
        return Comparison{
            .ours = ours, .floor = floor, .bytes = states->bytes(), .prepare = [states] {}};
      });
    };
    for (const Base base : kBases) {
      for (const Changed changed : kChanges) {
        add(std::string(name_of(changed)) + ", base " + name_of(base) +
                ", beside memcmp and digest",
            changed, base, [](States& s) { return std::pair(s.delta(), s.compare_and_digest()); });
      }
    }
    for (const Changed changed : {Changed::nothing, Changed::scattered}) {
      add(std::string(name_of(changed)) + ", base in memory, beside a full save", changed,
          Base::memory, [](States& s) { return std::pair(s.delta(), s.full_save()); });
    }
    add("memcmp and digest beside memcmp", Changed::nothing, Base::memory,
        [](States& s) { return std::pair(s.compare_and_digest(), s.compare()); });
    add("memcmp and digest beside memcpy", Changed::nothing, Base::memory,
        [](States& s) { return std::pair(s.compare_and_digest(), s.memory_copy()); });
  }
  return false;
}

}  // namespace thalia::bench::change_subject
