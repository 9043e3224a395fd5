// Runs one of the fuzz targets, by its name, over the files of folders, and over mutations of each:
// every truncation of small files, flips, overwritten, removed and repeated bytes from a fixed
// seed. An ordinary test with any compiler; a finding ends the process after its input was written
// down. Folders after
// --seeds are shared with other tests and many: their files get a few mutations and no truncations.
// --thin N leaves all but one in N of truncations and mutations out, where each takes long.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_target.h"

/// There with a sanitizer only.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Input = std::vector<std::uint8_t>;

// Filled before main() by what FUZZ_TARGET leaves in each source.
std::map<std::string_view, FuzzTarget>& targets() {
  static std::map<std::string_view, FuzzTarget> named;
  return named;
}

FuzzTarget target = nullptr;

constexpr std::size_t kTruncations = 2048;
constexpr std::size_t kSeedMutations = 10;

const Input* running = nullptr;

// Where a sanitizer or FUZZ_REQUIRE ends the process the input would be lost otherwise. Runs in
// signal handlers: system calls only.
void keep_finding() {
  static constexpr char kPath[] = "fuzz-finding.bin";
  static constexpr char kNote[] = "the input is in fuzz-finding.bin\n";
  if (running == nullptr) return;
  const int fd = ::open(kPath, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0 || ::write(fd, running->data(), running->size()) < 0) return;
  ::close(fd);
  if (::write(STDERR_FILENO, kNote, sizeof kNote - 1) < 0) return;
}

extern "C" void end_by_signal(int signal) {
  keep_finding();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const Input& input) {
  running = &input;
  // In memory of its exact size, so that a sanitizer sees a read past the end.
  const Input exact(input);
  target(exact.data(), exact.size());
  running = nullptr;
}

std::size_t below(std::mt19937_64& random, std::size_t bound) {
  return static_cast<std::size_t>(random() % bound);
}

// Values that lengths and counts go wrong at.
std::uint64_t interesting(std::mt19937_64& random) {
  constexpr std::uint64_t kValues[] = {
      0,      1,      7,          8,        63,         64,         0x7f,       0x80,       0xff,
      0x7fff, 0xffff, 0x7fffffff, 1u << 31, 0xffffffff, 1ull << 32, 1ull << 62, 1ull << 63, ~0ull};
  return kValues[below(random, std::size(kValues))];
}

void mutate(Input& bytes, std::mt19937_64& random) {
  if (bytes.empty()) return;
  const std::size_t at = below(random, bytes.size());
  const std::size_t run = 1 + below(random, std::min<std::size_t>(16, bytes.size() - at));
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (below(random, 6)) {
    case 0:
      bytes[at] ^= static_cast<std::uint8_t>(1u << below(random, 8));
      break;
    case 1:
      bytes[at] = static_cast<std::uint8_t>(random());
      break;
    case 2: {
      const std::uint64_t value = interesting(random);
      const std::size_t width = std::min(std::size_t{1} << below(random, 4), bytes.size() - at);
      for (std::size_t i = 0; i < width; ++i) {
        bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
      }
      break;
    }
    case 3:
      bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(run));
      break;
    case 4: {
      const Input repeated(begin, begin + static_cast<std::ptrdiff_t>(run));
      bytes.insert(begin, repeated.begin(), repeated.end());
      break;
    }
    default:
      std::swap(bytes[at], bytes[below(random, bytes.size())]);
      break;
  }
}

void run_file(const std::filesystem::path& path, std::size_t mutations, std::size_t truncations,
              std::size_t thin) {
  std::ifstream stream(path, std::ios::binary);
  const Input original{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.good() && !stream.eof()) throw std::runtime_error("cannot read " + path.string());
  run(original);
  // From another length on in files of other sizes: together they see all.
  for (std::size_t length = original.size() % thin; length < std::min(original.size(), truncations);
       length += thin) {
    run(Input(original.begin(), original.begin() + static_cast<std::ptrdiff_t>(length)));
  }
  std::mt19937_64 random(original.size());
  for (std::size_t i = 0; i < (mutations + thin - 1) / thin; ++i) {
    Input changed = original;
    for (std::size_t count = 1 + below(random, 4); count > 0; --count) mutate(changed, random);
    run(changed);
  }
}

}  // namespace

NamedFuzzTarget::NamedFuzzTarget(const char* name, FuzzTarget named) {
  targets()[name] = named;
}

int main(int argc, char** argv) {
  const auto found = targets().find(argc > 1 ? argv[1] : "");
  if (found != targets().end()) target = found->second;
  const std::size_t mutations = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
  std::size_t thin = 1;
  std::set<std::filesystem::path> files, seeds;
  std::set<std::filesystem::path>* list = &files;
  for (int i = 3; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--seeds") {
      list = &seeds;
      continue;
    }
    if (std::string_view(argv[i]) == "--thin" && i + 1 < argc) {
      thin = std::max<std::size_t>(1, std::strtoul(argv[++i], nullptr, 10));
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (entry.is_regular_file()) list->insert(entry.path());
    }
  }
  if (target == nullptr || files.empty() || list->empty()) {
    std::fprintf(
        stderr,
        "usage: %s TARGET MUTATIONS [--thin N] CORPUS-FOLDER… [--seeds FOLDER…], with at least one "
        "file\n",
        argv[0]);
    return 2;
  }
  for (const int signal : {SIGABRT, SIGBUS, SIGFPE, SIGSEGV}) std::signal(signal, end_by_signal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_finding);
  for (const auto& file : files) run_file(file, mutations, kTruncations, thin);
  for (const auto& seed : seeds) run_file(seed, kSeedMutations, 0, thin);
  std::printf("%zu files, each with %zu mutations; %zu seeds; one in %zu\n", files.size(),
              mutations, seeds.size(), thin);
}
