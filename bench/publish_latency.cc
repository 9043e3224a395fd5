// publish_latency [--mib N] [--changed PERCENT] [--rounds N] [--dir FOLDER]: how long after the
// call another process has the next state of a model, in its memory and verified.
//
// bf16 weights, of which so many elements change between two steps, are published as a delta, as a
// full .thalia file, and as a file of the layout of safetensors that is written, synced, renamed
// and its folder synced, by turns. A process that was there before follows each: by a Follower, or
// by looking for another file each millisecond and reading it whole, unverified. All are durable.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "io/file/posix_file.h"
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
  fs::path folder = "/var/tmp";
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr std::size_t kTensor = 4 << 20;  ///< elements

/// Weights as tensors, each of which borrows its part.
StateSource state_of(const std::vector<BFloat16>& weights, std::uint64_t step) {
  StateSource state{.training_steps = step};
  RegionSource& region = state.regions.emplace_back();
  region.spec.name = "model";
  for (std::size_t at = 0; at < weights.size(); at += kTensor) {
    const auto part = std::span(weights).subspan(at, std::min(kTensor, weights.size() - at));
    const Tensor tensor = Tensor::borrow(DType::bf16, {part.size()}, std::as_bytes(part));
    region.tensors.push_back(
        {.spec = {.name = "w" + std::to_string(at), .dtype = DType::bf16, .shape = {part.size()}},
         .load = [tensor] { return tensor; }});
  }
  return state;
}

/// Tells the time at which each state was there.
void tell(int pipe) {
  const double time = now();
  if (::write(pipe, &time, sizeof time) != sizeof time) std::_Exit(2);
}

void follow_run(const fs::path& run, int pipe) {
  Follower follower(run);
  while (follower.wait()) tell(pipe);
}

void follow_file(const fs::path& file, int pipe) {
  struct stat held {};
  std::vector<std::byte> memory;
  while (true) {
    struct stat found {};
    if (::stat(file.c_str(), &found) == 0 && found.st_ino != held.st_ino) {
      const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
      memory.resize(static_cast<std::size_t>(found.st_size));
      io::pread_all(fd, 0, memory, file);
      ::close(fd);
      held = found;
      tell(pipe);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// The process that follows, from before there is anything.
class Server {
 public:
  template <typename Follow>
  Server(const fs::path& what, Follow follow) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
    child_ = ::fork();
    if (child_ == 0) {
      ::close(ends[0]);
      try {
        follow(what, ends[1]);
      } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s\n", failure.what());
      }
      std::_Exit(1);
    }
    ::close(ends[1]);
    pipe_ = ends[0];
  }
  ~Server() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(pipe_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  double seen() const {
    double time = 0;
    if (::read(pipe_, &time, sizeof time) != sizeof time)
      throw std::runtime_error("the follower has ended");
    return time;
  }

 private:
  pid_t child_ = -1;
  int pipe_ = -1;
};

void write_file(const fs::path& target, const std::vector<BFloat16>& weights) {
  std::string header = R"({"w":{"dtype":"BF16","shape":[)" + std::to_string(weights.size()) +
                       R"(],"data_offsets":[0,)" + std::to_string(weights.size() * 2) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  const fs::path aside = target.string() + ".new";
  const int fd = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  io::pwrite_all(fd, 0, std::as_bytes(std::span(&length, 1)), aside);
  io::pwrite_all(fd, 8, std::as_bytes(std::span(header)), aside);
  io::pwrite_all(fd, 8 + length, std::as_bytes(std::span(weights)), aside);
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

int run(const Settings& settings) {
  const bench::ScratchFolder scratch(settings.folder);
  const fs::path deltas =
      run_with(scratch / "deltas", {.kind = DeltaPolicy::Kind::every, .full_every = 64});
  const fs::path full = run_with(scratch / "full", {.kind = DeltaPolicy::Kind::never});
  const fs::path file = scratch / "model.safetensors";
  const Server by_deltas(deltas, follow_run), by_full(full, follow_run), by_file(file, follow_file);
  std::vector<BFloat16> weights = measure::normal_bf16(settings.mib << 20);
  Publisher delta_publisher(deltas), full_publisher(full);
  std::mt19937_64 random(1);
  // Until the other process has it, and until the call is back.
  std::array<std::vector<double>, 3> seen, back;
  for (unsigned round = 0; round <= settings.rounds; ++round) {
    const auto changes =
        static_cast<std::uint64_t>(static_cast<double>(weights.size()) * settings.changed / 100);
    for (std::uint64_t i = 0; i < changes; ++i) {
      std::byte& low = *reinterpret_cast<std::byte*>(&weights[random() % weights.size()]);
      low ^= std::byte{1};
    }
    const StateSource state = state_of(weights, round + 1);
    for (unsigned turn = 0; turn < 3; ++turn) {
      const unsigned side = (turn + round) % 3;
      bench::ready_to_write(settings.folder, weights.size() * 2);
      const double begin = now();
      if (side == 0) delta_publisher.publish(round + 1, state);
      if (side == 1) full_publisher.publish(round + 1, state);
      if (side == 2) write_file(file, weights);
      const double end = now();
      const Server& server = side == 0 ? by_deltas : side == 1 ? by_full : by_file;
      const double there = server.seen();
      // The first is a full file on each side.
      if (round == 0) continue;
      seen[side].push_back(there - begin);
      back[side].push_back(end - begin);
    }
  }
  const auto ratios = [](const std::vector<double>& theirs, const std::vector<double>& ours) {
    std::vector<double> all;
    for (std::size_t i = 0; i < ours.size(); ++i) all.push_back(theirs[i] / ours[i]);
    return spread(all, "");
  };
  std::printf("%llu MiB of bf16, %.2f %% of the elements changed, %u rounds, in %s\n\n",
              static_cast<unsigned long long>(settings.mib), settings.changed, settings.rounds,
              settings.folder.c_str());
  std::printf(
      "| published as | seen by another process | call is back | seen, by a delta's time |\n"
      "|---|---|---|---|\n");
  const char* const names[] = {"a delta", "a full .thalia file", "a file of safetensors' layout"};
  for (unsigned side = 0; side < 3; ++side)
    std::printf("| %s | %s | %s | %s |\n", names[side], spread(seen[side], " s").c_str(),
                spread(back[side], " s").c_str(), ratios(seen[side], seen[0]).c_str());
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
    } else if (name == "--dir") {
      settings.folder = value;
    } else {
      std::fprintf(stderr,
                   "publish_latency [--mib N] [--changed PERCENT] [--rounds N] [--dir FOLDER]\n");
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
