// publish_latency [--mib N] [--changed PERCENT] [--dtype bf16|f32] [--rounds N] [--dir FOLDER]
// [--safetensors PYTHON]: how long after the call another process has the next state of a model, in
// its memory and verified.
//
// Weights, of which so many elements change between two steps, are published as a delta, as a full
// .thalia file, and as a file of the layout of safetensors that is written, synced, renamed and its
// folder synced, by turns. A process that was there before follows each: by a Follower, or by
// looking for another file each millisecond and reading it whole, unverified. With a PYTHON that
// has the package safetensors, publish_peer.py does the same by its save_file() and load_file(), in
// processes of its own. All are durable.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "io/file/memory_file.h"
#include "io/file/posix_file.h"
#include "io/system/unique_fd.h"
#include "measure/samples.h"
#include "scratch.h"
#include "thalia/store.h"

namespace {

using namespace thalia;
namespace fs = std::filesystem;

struct Settings {
  std::uint64_t mib = 256;
  double changed = 1;  ///< percent
  unsigned rounds = 7;
  DType dtype = DType::bf16;
  fs::path folder = "/var/tmp";
  std::string python{};
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr std::size_t kTensor = 8 << 20;  ///< bytes

/// Weights as tensors, each of which borrows its part.
StateSource state_of(ByteSpan weights, DType dtype, std::uint64_t step) {
  StateSource state{.training_steps = step};
  RegionSource& region = state.regions.emplace_back();
  region.spec.name = "model";
  const std::uint64_t width = dtype_bits(dtype) / 8;
  for (std::size_t at = 0; at < weights.size(); at += kTensor) {
    const ByteSpan part = weights.subspan(at, std::min(kTensor, weights.size() - at));
    const Shape shape{part.size() / width};
    const Tensor tensor = Tensor::borrow(dtype, shape, part);
    region.tensors.push_back(
        {.spec = {.name = "w" + std::to_string(at), .dtype = dtype, .shape = shape},
         .load = [tensor] { return tensor; }});
  }
  return state;
}

/// When a state was there, and how long it took to make it once it was found.
struct Told {
  double time = 0;
  double made = 0;
};

void tell(int pipe, double made) {
  const Told told{.time = now(), .made = made};
  if (::write(pipe, &told, sizeof told) != sizeof told) std::_Exit(2);
}

void follow_run(const fs::path& run, int pipe) {
  Follower follower(run);
  while (const auto update = follower.wait()) tell(pipe, update->seconds);
}

void follow_file(const fs::path& file, int pipe) {
  struct stat held {};
  std::vector<std::byte> memory;
  while (true) {
    struct stat found {};
    if (::stat(file.c_str(), &found) == 0 && found.st_ino != held.st_ino) {
      const double begin = now();
      const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
      memory.resize(static_cast<std::size_t>(found.st_size));
      io::pread_all(fd, 0, memory, file);
      ::close(fd);
      held = found;
      tell(pipe, now() - begin);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// A process beside this one, which tells times.
class Beside {
 public:
  /// @param work what it does, with the descriptors that it reads and writes. It does not return.
  template <typename Work>
  explicit Beside(Work work) {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0)
      throw std::runtime_error("pipe failed");
    child_ = ::fork();
    if (child_ == 0) {
      try {
        work(to[0], from[1]);
      } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s\n", failure.what());
      }
      std::_Exit(1);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  ~Beside() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(to_);
    ::close(from_);
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  void begin() const {
    if (::write(to_, "", 1) != 1) throw std::runtime_error("a process has ended");
  }
  Told told() const {
    Told told;
    if (::read(from_, &told, sizeof told) != sizeof told)
      throw std::runtime_error("a process has ended");
    return told;
  }

 private:
  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
};

template <typename Follow>
std::unique_ptr<Beside> follower_of(const fs::path& what, Follow follow) {
  return std::make_unique<Beside>([=](int, int pipe) { follow(what, pipe); });
}

/// Once it is ready. Null where it cannot be.
std::unique_ptr<Beside> peer(const std::string& python, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {python, THALIA_PUBLISH_PEER});
  auto made = std::make_unique<Beside>([=](int in, int out) {
    std::vector<char*> words;
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    if (::dup2(in, 0) != 0 || ::dup2(out, 1) != 1) std::_Exit(1);
    ::execvp(words.front(), words.data());
    std::perror(words.front());
  });
  try {
    made->told();
  } catch (const std::runtime_error&) {
    return nullptr;
  }
  return made;
}

void write_file(const fs::path& target, ByteSpan weights, DType dtype) {
  const std::string size = std::to_string(weights.size());
  const std::string count = std::to_string(weights.size() / (dtype_bits(dtype) / 8));
  std::string header = R"({"w":{"dtype":")" + std::string(dtype == DType::f32 ? "F32" : "BF16") +
                       R"(","shape":[)" + count + R"(],"data_offsets":[0,)" + size + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  const fs::path aside = target.string() + ".new";
  const int fd = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  io::pwrite_all(fd, 0, std::as_bytes(std::span(&length, 1)), aside);
  io::pwrite_all(fd, 8, std::as_bytes(std::span(header)), aside);
  io::pwrite_all(fd, 8 + length, weights, aside);
  if (::fsync(fd) != 0) throw std::runtime_error("fsync failed");
  ::close(fd);
  fs::rename(aside, target);
  const int folder = ::open(target.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (::fsync(folder) != 0) throw std::runtime_error("fsync failed");
  ::close(folder);
}

fs::path run_with(const fs::path& folder, DeltaPolicy policy) {
  RunConfig config{.phases = {{.name = "train"}}, .deltas = policy};
  config.phases[0].retention.keep_last = 1;
  create_run(folder, config);
  return folder;
}

std::string spread(std::vector<double> values, const char* unit) {
  std::ranges::sort(values);
  char text[96];
  std::snprintf(text, sizeof text, "%.2f%s (%.2f to %.2f)", values[values.size() / 2], unit,
                values.front(), values.back());
  return text;
}

/// One way to publish, and who follows it.
struct Side {
  const char* name;
  std::function<double(std::uint64_t step)> publish;  ///< seconds until it can be found
  std::unique_ptr<Beside> server;
  /// Until it can be found; what making it takes then; until the other process has it, until
  /// the call is back.
  std::vector<double> there{}, made{}, seen{}, back{};
};

std::vector<double> ratios(const std::vector<double>& theirs, const std::vector<double>& ours) {
  std::vector<double> all;
  for (std::size_t i = 0; i < ours.size(); ++i) all.push_back(theirs[i] / ours[i]);
  return all;
}

/// Weights in memory that another process can map, by the path that is returned.
std::string fill(MutableByteSpan weights, DType dtype, int fd) {
  const auto copy = [&](const auto& values) {
    std::memcpy(weights.data(), values.data(), weights.size());
  };
  if (dtype == DType::f32) copy(measure::normal_f32(weights.size()));
  if (dtype == DType::bf16) copy(measure::normal_bf16(weights.size()));
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd);
}

void print(const Settings& settings, const std::vector<Side>& sides) {
  std::printf("%llu MiB of %s, %.2f %% of the elements changed, %u rounds, in %s\n\n",
              static_cast<unsigned long long>(settings.mib),
              std::string(dtype_name(settings.dtype)).c_str(), settings.changed, settings.rounds,
              settings.folder.c_str());
  std::printf(
      "| published as | can be found | then made | seen by another process | call is back | seen, "
      "by "
      "a delta's time |\n|---|---|---|---|---|---|\n");
  for (const Side& side : sides)
    std::printf("| %s | %s | %s | %s | %s | %s |\n", side.name, spread(side.there, " s").c_str(),
                spread(side.made, " s").c_str(), spread(side.seen, " s").c_str(),
                spread(side.back, " s").c_str(),
                spread(ratios(side.seen, sides.front().seen), "").c_str());
}

int run(const Settings& settings) {
  const bench::ScratchFolder scratch(settings.folder);
  const fs::path deltas =
      run_with(scratch / "deltas", {.kind = DeltaPolicy::Kind::every, .full_every = 64});
  const fs::path full = run_with(scratch / "full", {.kind = DeltaPolicy::Kind::never});
  const fs::path file = scratch / "model.safetensors", other = scratch / "other.safetensors";
  const io::UniqueFd memory = io::create_memory_file();
  const io::MemoryMapping mapping(memory.get(), settings.mib << 20);
  const MutableByteSpan weights = mapping.bytes();
  const std::string shared = fill(weights, settings.dtype, memory.get());
  // Processes before threads.
  std::vector<Side> sides;
  sides.push_back({.name = "a delta", .server = follower_of(deltas, follow_run)});
  sides.push_back({.name = "a full .thalia file", .server = follower_of(full, follow_run)});
  sides.push_back(
      {.name = "a file of safetensors' layout", .server = follower_of(file, follow_file)});
  std::unique_ptr<Beside> trainer;
  if (!settings.python.empty()) {
    trainer = peer(
        settings.python,
        {"train", other, shared, std::string(dtype_name(settings.dtype)), std::to_string(kTensor)});
    std::unique_ptr<Beside> server = peer(settings.python, {"serve", other});
    if (!server) trainer.reset();
    if (!trainer)
      std::printf("%s has no safetensors: its row is left out\n\n", settings.python.c_str());
    if (trainer)
      sides.push_back({.name = "safetensors' save_file, load_file", .server = std::move(server)});
  }
  Publisher delta_publisher(deltas), full_publisher(full);
  const auto by = [&](Publisher& publisher) {
    return [&](std::uint64_t step) {
      return publisher.publish(step, state_of(weights, settings.dtype, step)).visible_seconds;
    };
  };
  sides[0].publish = by(delta_publisher);
  sides[1].publish = by(full_publisher);
  const auto timed = [](const auto& work) {
    const double begin = now();
    work();
    return now() - begin;
  };
  sides[2].publish = [&](std::uint64_t) {
    return timed([&] { write_file(file, weights, settings.dtype); });
  };
  if (trainer) {
    sides[3].publish = [&](std::uint64_t) {
      return timed([&] {
        trainer->begin();
        trainer->told();
      });
    };
  }
  std::mt19937_64 random(1);
  const std::uint64_t width = dtype_bits(settings.dtype) / 8;
  const std::uint64_t elements = weights.size() / width;
  for (unsigned round = 0; round <= settings.rounds; ++round) {
    const auto changes =
        static_cast<std::uint64_t>(static_cast<double>(elements) * settings.changed / 100);
    for (std::uint64_t i = 0; i < changes; ++i)
      weights[random() % elements * width] ^= std::byte{1};
    for (std::size_t turn = 0; turn < sides.size(); ++turn) {
      Side& side = sides[(turn + round) % sides.size()];
      bench::ready_to_write(settings.folder, weights.size());
      const double begin = now();
      const double there = side.publish(round + 1);
      const double end = now();
      const Told told = side.server->told();
      // The first is a full file on each side, and of processes that just began.
      if (round == 0) continue;
      side.there.push_back(there);
      side.made.push_back(told.made);
      side.seen.push_back(told.time - begin);
      side.back.push_back(end - begin);
    }
  }
  print(settings, sides);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  Settings settings;
  if (const char* folder = std::getenv("THALIA_BENCH_DIR")) settings.folder = folder;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--smoke") {
      settings.mib = settings.rounds = 1;
      continue;
    }
    const std::string value = i + 1 < count ? arguments[++i] : "";
    if (name == "--mib") {
      settings.mib = std::stoull(value);
    } else if (name == "--changed") {
      settings.changed = std::stod(value);
    } else if (name == "--rounds") {
      settings.rounds = static_cast<unsigned>(std::stoul(value));
    } else if (name == "--dtype" && (value == "bf16" || value == "f32")) {
      settings.dtype = value == "f32" ? DType::f32 : DType::bf16;
    } else if (name == "--safetensors") {
      settings.python = value;
    } else if (name == "--dir") {
      settings.folder = value;
    } else {
      std::fprintf(stderr,
                   "publish_latency [--mib N] [--changed PERCENT] [--dtype bf16|f32] [--rounds N] "
                   "[--dir FOLDER] [--safetensors PYTHON]\n");
      return 2;
    }
  }
  try {
    return run(settings);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "publish_latency: %s\n", failure.what());
    return 1;
  }
}
