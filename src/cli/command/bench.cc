// thalia bench: saving and loading in a folder, beside what its disk and the memory can do. A
// number counts only beside its floor, the same bytes moved by plain calls in the same round; the
// ratio of the two is the result. Whatever a step leaves behind (caches, dirty pages, files) is
// undone before the next one, outside of the timed part.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/bench_result.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "measure/disk.h"
#include "measure/memory.h"
#include "measure/payload.h"
#include "measure/samples.h"
#include "thalia/async_save.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/writer.h"

namespace thalia::cli {
namespace {

// Below 1 MiB a run takes too little time for its figures to mean anything.
constexpr std::uint64_t kLeastBytes = 1 << 20;
constexpr const char* kMemoryCopy = "memory copy";
constexpr const char* kRawWrite = "raw write, fsync";
constexpr const char* kRawRead = "raw read";
constexpr const char* kPagesStay =
    "skipped: pages of the file stay in memory, nothing is cold here";

struct BenchArguments {
  std::string folder = ".";
  std::uint64_t size = 1 << 30;
  unsigned rounds = 3;
};

void check(std::uint64_t size, std::uint64_t bound, const std::string& why) {
  if (size <= bound) return;
  throw UsageError(
      ErrorCode::bad_argument, {},
      {.field = "--size", .value = human_bytes(size), .bound = human_bytes(bound) + ", " + why});
}

void check_rounds(unsigned rounds) {
  if (rounds >= 1 && rounds <= 1000) return;
  throw UsageError(ErrorCode::bad_argument, {},
                   {.field = "--rounds", .value = fmt::format("{}", rounds), .bound = "1 to 1000"});
}

void check_size(const BenchArguments& arguments) {
  if (arguments.size < kLeastBytes) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--size",
                      .value = human_bytes(arguments.size),
                      .bound = "at least " + human_bytes(kLeastBytes)});
  }
  // On the disk, the state lies beside as many bytes that touch_free_memory() takes for a moment.
  // In memory there are the weights, the target, the snapshot of the background save, and cached
  // pages.
  struct statvfs disk {};
  if (::statvfs(arguments.folder.c_str(), &disk) != 0)
    throw IoError("statvfs", errno, {.path = arguments.folder});
  check(arguments.size, std::uint64_t{disk.f_bavail} * disk.f_frsize / 2,
        "half of what is free in " + arguments.folder);
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  check(arguments.size,
        static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes) / 4,
        "a quarter of the memory");
}

// Holds the state, the memory that it is loaded to, and the files; all are released at its end.
class Bench {
 public:
  Bench(const BenchArguments& arguments, Session session)
      : arguments_(arguments),
        session_(std::move(session)),
        stop_(session_.stop),
        folder_(arguments.folder),
        bytes_(arguments.size / 4096 * 4096),
        weights_(bytes_),
        target_(bytes_),
        saver_({.snapshot_threads = session_.common.threads}),
        bar_("bench") {
    const MutableByteSpan weights = weights_.bytes();
    measure::fill_normal({reinterpret_cast<float*>(weights.data()), weights.size() / sizeof(float)},
                         session_.common.threads);
    saver_.reserve(bytes_);
    declare();
    saver_.wait_until_reserved();
  }

  BenchReport run() {
    for (unsigned round = 0; round < arguments_.rounds; ++round) {
      // The order changes with each round: a step that comes second finds warmer caches and a
      // busier disk.
      run_group(writes_, round % 2 == 1);
      save_again();
      run_group(reads_, round % 2 == 1);
    }
    // If the cache could not be emptied for one cold step, no cold figure is shown: they would be
    // compared with a floor that was measured in another state.
    const bool never_cold = std::any_of(
        reads_.begin(), reads_.end(), [](const Step& step) { return step.row.note == kPagesStay; });
    BenchReport report{.folder = arguments_.folder,
                       .bytes = bytes_,
                       .rounds = arguments_.rounds,
                       .threads = session_.common.threads,
                       .rows = {}};
    for (std::vector<Step>* group : {&writes_, &reads_}) {
      for (Step& step : *group) {
        if (never_cold && step.cache == Cache::cold) {
          step.row.seconds.clear();
          step.row.note = kPagesStay;
        }
        report.rows.push_back(std::move(step.row));
      }
    }
    bar_.finish();
    return report;
  }

 private:
  enum class Cache { warm, cold };
  struct Step {
    BenchRow row;
    std::function<void()> run;
    Cache cache = Cache::warm;
    std::function<void()> after = nullptr;  ///< not timed
  };

  void declare() {
    const bool direct = measure::allows_direct(folder_.path());
    const std::string denied = direct ? "" : "through the page cache: O_DIRECT is denied here";
    writes_ = {
        {{kMemoryCopy, "", ""},
         [this] { measure::copy_all(weights_.bytes(), target_.bytes(), session_.common.threads); }},
        {{kRawWrite, "", denied},
         [this, direct] { measure::write_raw(folder_ / "raw", weights_.bytes(), direct, stop_); }},
        {{"save, durable", kRawWrite, ""},
         [this] { save({.output = {.durability = Durability::full}}); }},
        {{"save, durable, lz4", kRawWrite, ""},
         [this] {
           save({.compression = {.codec = Codec::lz4}, .output = {.durability = Durability::full}});
         }},
        {{"save, durable, zstd", kRawWrite, ""},
         [this] {
           save(
               {.compression = {.codec = Codec::zstd}, .output = {.durability = Durability::full}});
         }},
        {{"save, durable, plane_entropy", kRawWrite, ""},
         [this] {
           save({.compression = {.codec = Codec::plane_entropy},
                 .output = {.durability = Durability::full}});
         }},
        {{"save, durable, packed_exponents", kRawWrite, ""},
         [this] {
           save({.compression = {.codec = Codec::packed_exponents},
                 .output = {.durability = Durability::full}});
         }},
        {{"save, not durable", kMemoryCopy, ""},
         [this] { save({.output = {.durability = Durability::none}}); }},
        {{"save in the background, durable", kMemoryCopy,
          "the time until the caller goes on; the file is written afterwards"},
         [this] {
           background_ = saver_.save_async(writer({.output = {.durability = Durability::full}}));
         },
         Cache::warm,
         [this] { background_->wait(); }},
    };
    reads_ = {
        {{kRawRead, "", denied},
         [this, direct] { measure::read_raw(file(), target_.bytes(), direct, stop_); },
         Cache::cold},
        {{"load, cold, stream, verified", kRawRead, ""}, [this] { stream(); }, Cache::cold},
        {{"load, cold, verified", kRawRead, ""}, [this] { load(); }, Cache::cold},
        {{"load, warm, verified", kMemoryCopy, ""}, [this] { load(); }},
        {{"verify, warm", kMemoryCopy, ""}, [this] { verify_file(); }},
    };
  }

  void run_group(std::vector<Step>& group, bool backwards) {
    const auto measured = [&](Step& step) {
      measure::throw_if_stopped(stop_);
      prepare(step);
      if (step.row.note == kPagesStay) return;
      const auto start = std::chrono::steady_clock::now();
      step.run();
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      step.row.seconds.push_back(taken.count());
      if (step.after) step.after();
      ++done_;
      bar_.update(done_ * bytes_, total());
    };
    if (backwards) {
      std::for_each(group.rbegin(), group.rend(), measured);
    } else {
      std::for_each(group.begin(), group.end(), measured);
    }
  }

  // Before each run, outside of the timed part: no file to replace, a disk with nothing left to do,
  // the cache in the state that the step asks for, and free memory that was touched recently (see
  // touch_free_memory()).
  void prepare(Step& step) {
    const bool writes =
        !writes_.empty() && &step >= writes_.data() && &step < writes_.data() + writes_.size();
    if (writes) {
      remove_file(folder_ / "raw");
      remove_file(file());
      measure::settle(folder_.path());
    } else if (step.cache == Cache::cold) {
      if (measure::drop_from_cache(file()) != 0) step.row.note = kPagesStay;
    } else {
      measure::read_raw(file(), target_.bytes(), false, stop_);
    }
    measure::touch_free_memory(folder_.path(), bytes_);
  }

  // Reads need the plain state, whichever way it was written last.
  void save_again() {
    remove_file(folder_ / "raw");
    remove_file(file());
    save({.output = {.durability = Durability::full}});
    measure::settle(folder_.path());
  }

  void save(const SaveOptions& options) { writer(options).commit(); }

  Writer writer(SaveOptions options) {
    options.work.threads = session_.common.threads;
    options.work.cancel = stop_;
    Writer writer(file(), options);
    measure::add_tensors(writer, weights_.bytes(), DType::f32);
    return writer;
  }

  Reader open() const { return Reader::open(file(), session_.options<ReadOptions>()); }

  void load() { measure::load(open(), target_.bytes(), stop_); }
  void stream() { measure::stream(open(), target_.bytes(), session_.options<StreamOptions>()); }
  void verify_file() { measure::verify(file(), session_.options<VerifyOptions>()); }

  std::filesystem::path file() const { return folder_ / "state.thalia"; }
  std::uint64_t total() const {
    return arguments_.rounds * (writes_.size() + reads_.size()) * bytes_;
  }

  BenchArguments arguments_;
  Session session_;
  std::stop_token stop_;
  measure::ScratchFolder folder_;
  std::uint64_t bytes_;  ///< of the state: whole pages
  measure::PageMemory weights_;
  measure::PageMemory target_;
  AsyncSaver saver_;
  std::optional<SaveHandle<>> background_;
  ProgressBar bar_;
  std::vector<Step> writes_, reads_;
  std::uint64_t done_ = 0;  ///< runs
};

int run_bench(const BenchArguments& arguments, const Session& session) {
  check_rounds(arguments.rounds);
  check_size(arguments);
  Session own = session;
  unsigned& threads = own.common.threads;
  // The number is shown in the report, so it is settled here.
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  const BenchReport report = Bench(arguments, own).run();
  if (session.common.json) {
    session.out.write(as_json(report) + "\n");
  } else {
    print_text(session.out, report);
  }
  return kDone;
}

}  // namespace

Run declare_bench(CLI::App& app) {
  app.description(
      "Saves and loads weights in a folder, and shows how fast beside the same bytes written to "
      "and read from its disk past the page cache, and copied in memory. All by turns, some "
      "rounds; a ratio is the other's time by ours. The files are removed afterwards.");
  const auto arguments = std::make_shared<BenchArguments>();
  offer(add_option(app, "--dir D", arguments->folder,
                   "The folder to try, on the disk in question (default .)"),
        kFolder);
  offer(add_option(app, "--size N", arguments->size,
                   "Bytes to save, as 512MiB or 4GiB (default 1GiB)")
            ->transform(size_value()),
        "256MiB|1GiB|4GiB");
  add_option(app, "--rounds N", arguments->rounds, "Runs of each (default 3)");
  return [arguments](const Session& session) { return run_bench(*arguments, session); };
}

}  // namespace thalia::cli
