// Streaming a whole file into memory of the caller's: cold beside what the disk gives and beside a
// copy out of a mapping, warm beside memcpy, verified beside unverified, compressed.
#include <memory>

#include "floors.h"
#include "measure/samples.h"
#include "paired.h"
#include "scratch.h"
#include "settings.h"
#include "thalia/reader.h"
#include "thalia/stream.h"

namespace thalia::bench::stream_subject {
namespace {

constexpr Verification kOff = Verification::off;
constexpr Verification kOn = Verification::on_first_touch;

struct File {
  File(const Settings& settings, const SaveOptions& options)
      : folder(settings.disk), path(folder / "stream.thalia"), target(settings.bytes() + kSlack) {
    const auto weights = measure::normal_bf16(settings.bytes());
    payload_bytes = as_byte_span(weights).size();
    measure::save(path, as_byte_span(weights), DType::bf16, measure::kTensorBytes, options);
    measure::settle(settings.disk);
  }

  // The tensors go to the target one after the other, from `shift` on.
  Side stream(const char* name, Verification verification, IoMode io, std::size_t shift = 0) const {
    return {name, [=, this] {
              measure::stream(Reader::open(path, {.verification = verification}),
                              target.bytes().subspan(shift), {.io = io});
            }};
  }
  // Each tensor goes to the stream's own memory and is dropped at once.
  Side arena(const char* name) const {
    return {name, [this] {
              const Reader reader = Reader::open(path);
              StreamReader stream(reader);
              while (stream.next()) {
              }
            }};
  }
  Side copies(const char* name, Verification verification) const {
    return {name, [=, this] {
              measure::load(Reader::open(path, {.verification = verification}), target.bytes());
            }};
  }
  // Reads the bytes of the file itself, compressed or not.
  Side disk() const {
    const std::uint64_t bytes = std::filesystem::file_size(path) / kPage * kPage;
    return {"O_DIRECT io_uring, 16 at a time",
            [=, this] { read_file_ring(path, target.bytes().first(bytes)); }};
  }
  Side pread() const {
    return {"pread, one core", [this] { read_file(path, target.bytes().first(payload_bytes), 1); }};
  }
  Side memory_copy() const {
    const auto raw = std::make_shared<RawMapping>(path);
    touch_pages(raw->bytes());
    return {"memcpy, one core, of touched pages", [=, this] {
              copy(raw->bytes().first(payload_bytes), target.bytes().first(payload_bytes));
            }};
  }

  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kSlack = 1 << 20;  // for what a file has beside its payloads

  ScratchFolder folder;
  std::filesystem::path path;
  measure::PageMemory target;
  std::size_t payload_bytes = 0;
};

SaveOptions stored_as(Codec codec) {
  return {.compression = {.codec = codec}, .output = {.durability = Durability::none}};
}

class Suite {
 public:
  Suite(const Settings& settings, PairedSuite& suite) : settings_(settings), suite_(suite) {}

  template <typename Sides>
  void cold(const std::string& name, Codec codec, Sides sides) {
    suite_.add("cold, " + name, [=, settings = settings_] {
      const auto file = std::make_shared<File>(settings, stored_as(codec));
      auto [ours, floor] = sides(*file);
      return Comparison{.ours = ours, .floor = floor, .bytes = settings.bytes(), .prepare = [file] {
                          drop_from_cache(file->path);
                        }};
    });
  }
  template <typename Sides>
  void warm(const std::string& name, Codec codec, Sides sides) {
    suite_.add("warm, " + name, [=, settings = settings_] {
      const auto file = std::make_shared<File>(settings, stored_as(codec));
      auto [ours, floor] = sides(*file);
      return Comparison{.ours = {ours.name, [file, run = ours.run] { run(); }},
                        .floor = floor,
                        .bytes = settings.bytes()};
    });
  }

 private:
  const Settings& settings_;
  PairedSuite& suite_;
};

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& paired) {
  constexpr Codec kRaw = Codec::none;
  constexpr IoMode kAuto = IoMode::automatic;
  Suite suite(settings, paired);
  suite.cold("verified beside the disk", kRaw, [](const File& file) {
    return std::pair(file.stream("stream, verified", kOn, kAuto), file.disk());
  });
  suite.cold("unverified beside the disk", kRaw, [](const File& file) {
    return std::pair(file.stream("stream, unverified", kOff, kAuto), file.disk());
  });
  suite.cold("into unaligned memory beside the disk", kRaw, [](const File& file) {
    return std::pair(file.stream("stream, verified, off a page", kOn, kAuto, 16), file.disk());
  });
  suite.cold("into its own memory beside the disk", kRaw, [](const File& file) {
    return std::pair(file.arena("stream, verified, own memory"), file.disk());
  });
  suite.cold("verified beside unverified", kRaw, [](const File& file) {
    return std::pair(file.stream("stream, verified", kOn, kAuto),
                     file.stream("stream, unverified", kOff, kAuto));
  });
  suite.cold("verified beside a mapping", kRaw, [](const File& file) {
    return std::pair(file.stream("stream, verified", kOn, kAuto),
                     file.copies("read, verified", kOn));
  });
  suite.cold("through the page cache beside pread", kRaw, [](const File& file) {
    return std::pair(file.stream("stream, verified, buffered", kOn, IoMode::buffered),
                     file.pread());
  });
  suite.warm("verified beside memcpy", kRaw, [](const File& file) {
    return std::pair(file.stream("stream, verified", kOn, kAuto), file.memory_copy());
  });
  suite.warm("verified beside a mapping", kRaw, [](const File& file) {
    return std::pair(file.stream("stream, verified", kOn, kAuto),
                     file.copies("read, verified", kOn));
  });
  for (const auto& [codec, name] : {std::pair(Codec::zstd, "zstd"), std::pair(Codec::lz4, "lz4")}) {
    suite.cold(std::string(name) + " beside a mapping", codec, [](const File& file) {
      return std::pair(file.stream("stream, verified", kOn, kAuto),
                       file.copies("read, verified", kOn));
    });
    suite.warm(std::string(name) + " beside a mapping", codec, [](const File& file) {
      return std::pair(file.stream("stream, verified", kOn, kAuto),
                       file.copies("read, verified", kOn));
    });
  }
  return false;
}

}  // namespace thalia::bench::stream_subject
