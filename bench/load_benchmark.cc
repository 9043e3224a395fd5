// Loading: warm from the page cache and cold from the disk, as views (every page touched) and into
// private memory (every byte copied), beside a raw mapping, memcpy and pread of the same file.
#include <memory>

#include "floors.h"
#include "measure/samples.h"
#include "paired.h"
#include "scratch.h"
#include "settings.h"
#include "thalia/reader.h"

namespace thalia::bench::load_subject {
namespace {

struct File {
  File(const std::filesystem::path& parent, std::uint64_t bytes)
      : folder(parent), path(folder / "load.thalia"), target(bytes) {
    const auto weights = measure::normal_bf16(bytes);
    measure::save(path, as_byte_span(weights), DType::bf16);
    measure::settle(parent);
  }

  Side views(const char* name, Verification verification, void (*use)(ByteSpan)) const {
    return {name, [=, this] {
              const Reader reader = Reader::open(path, {.verification = verification});
              const RegionView region = reader.region("model");
              for (std::uint32_t i = 0; i < region.tensor_count(); ++i)
                use(region.tensor(i).bytes());
            }};
  }
  Side copies(const char* name, Verification verification) {
    return {name, [=, this] {
              measure::load(Reader::open(path, {.verification = verification}), target);
            }};
  }
  Side raw_touch() const {
    return {"mmap, every page touched", [this] { touch_pages(RawMapping(path).bytes()); }};
  }
  Side pread(const char* name, unsigned threads) {
    return {name, [=, this] { read_file(path, target, threads); }};
  }
  Side direct_read() {
    const auto memory = std::make_shared<measure::PageMemory>(target.size());
    return {"O_DIRECT pread, 16 at a time", [=, this] { read_file_direct(path, *memory); }};
  }
  Side memory_copy() {
    const auto raw = std::make_shared<RawMapping>(path);
    touch_pages(raw->bytes());
    return {"memcpy, one core, of touched pages",
            [=, this] { copy(raw->bytes().first(target.size()), target); }};
  }

  ScratchFolder folder;
  std::filesystem::path path;
  std::vector<std::byte> target;
};

void read_bytes(ByteSpan bytes) {
  read_all(bytes, 1);
}

constexpr Verification kOff = Verification::off;
constexpr Verification kOn = Verification::on_first_touch;

void add_warm(const Settings& settings, PairedSuite& suite) {
  const auto add = [&](const std::string& name, auto sides) {
    suite.add("warm, " + name, [=] {
      const auto file = std::make_shared<File>(settings.disk, settings.bytes());
      auto [ours, floor] = sides(*file);
      // The sides borrow the file, so one of them holds it.
      return Comparison{.ours = {ours.name, [file, run = ours.run] { run(); }},
                        .floor = floor,
                        .bytes = settings.bytes()};
    });
  };
  add("views beside a raw mapping", [](File& file) {
    return std::pair(file.views("views, unverified", kOff, touch_pages), file.raw_touch());
  });
  add("verified views beside unverified", [](File& file) {
    return std::pair(file.views("views, verified, every byte read", kOn, read_bytes),
                     file.views("views, unverified, every byte read", kOff, read_bytes));
  });
  add("copies beside memcpy", [](File& file) {
    return std::pair(file.copies("read, unverified", kOff), file.memory_copy());
  });
  add("copies beside pread", [](File& file) {
    return std::pair(file.copies("read, unverified", kOff), file.pread("pread, one core", 1));
  });
  add("verified copies beside unverified", [](File& file) {
    return std::pair(file.copies("read, verified", kOn), file.copies("read, unverified", kOff));
  });
}

void add_cold(const Settings& settings, PairedSuite& suite) {
  const auto add = [&](const std::string& name, auto sides) {
    suite.add("cold, " + name, [=] {
      const auto file = std::make_shared<File>(settings.disk, settings.bytes());
      auto [ours, floor] = sides(*file);
      return Comparison{.ours = ours, .floor = floor, .bytes = settings.bytes(), .prepare = [file] {
                          drop_from_cache(file->path);
                        }};
    });
  };
  add("views beside a raw mapping", [](File& file) {
    return std::pair(file.views("views, unverified", kOff, touch_pages), file.raw_touch());
  });
  add("copies beside pread", [](File& file) {
    return std::pair(file.copies("read, unverified", kOff), file.pread("pread, one core", 1));
  });
  add("copies beside pread on all cores", [](File& file) {
    return std::pair(file.copies("read, unverified", kOff), file.pread("pread, all cores", 0));
  });
  add("copies beside direct reads", [](File& file) {
    return std::pair(file.copies("read, unverified", kOff), file.direct_read());
  });
  add("verified copies beside unverified", [](File& file) {
    return std::pair(file.copies("read, verified", kOn), file.copies("read, unverified", kOff));
  });
}

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  add_warm(settings, suite);
  add_cold(settings, suite);
  return false;
}

}  // namespace thalia::bench::load_subject
