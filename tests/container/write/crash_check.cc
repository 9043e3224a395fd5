#include "container/write/crash_check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <random>

#include "boost_test.h"
#include "support/bytes.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/verify.h"

namespace thalia::test {
namespace {

// The two states of a network, told apart by every payload byte.
Sample state(std::uint64_t seed) {
  Sample sample = small_sample();
  sample.training_steps = seed;
  sample.regions[0].tensors.push_back(
      dense_tensor("large", DType::u8, {400'000}, Role::weights, seed));
  return sample;
}

[[noreturn]] void save_for_ever(const std::filesystem::path& path, const Sample& first,
                                const Sample& second, Durability durability) {
  SaveOptions options = steady_options();
  options.output.durability = durability;
  try {
    for (;;) {
      save(path, first, options);
      save(path, second, options);
    }
  } catch (...) {
    ::_exit(1);
  }
}

void sleep_microseconds(long microseconds) {
  timespec left = {0, microseconds * 1000};
  while (::nanosleep(&left, &left) != 0) {
  }
}

// @return the number of files beside `name`, which are removed.
int sweep_others(const std::filesystem::path& folder, const std::string& name) {
  int others = 0;
  for (const std::string& other : list_folder(folder)) {
    if (other == name) continue;
    BOOST_TEST(other.ends_with(".thalia-tmp"), other);
    std::filesystem::remove(folder / other);
    ++others;
  }
  return others;
}

}  // namespace

void check_random_kills(int kills) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "f.thalia";
  const Sample first = state(1);
  const Sample second = state(2);
  save(path, second);
  const std::string bytes_of_second = read_file(path);
  save(path, first);
  const std::string bytes_of_first = read_file(path);
  std::mt19937_64 random(static_cast<std::uint64_t>(kills));
  int seen_second = 0;
  for (int i = 0; i < kills; ++i) {
    const Durability durability = i % 4 == 0 ? Durability::full : Durability::none;
    const pid_t child = ::fork();
    BOOST_TEST_REQUIRE(child >= 0);
    // Second first, so that a file of the first is not what every kill finds.
    if (child == 0) save_for_ever(path, second, first, durability);
    sleep_microseconds(static_cast<long>(random() % 8000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    BOOST_TEST(WIFSIGNALED(status));  // or a save failed

    const std::string found = read_file(path);
    seen_second += found == bytes_of_second;
    BOOST_TEST((found == bytes_of_first || found == bytes_of_second), "kill " << i);
    BOOST_TEST(verify(path).ok());
    BOOST_TEST(sweep_others(folder.path(), "f.thalia") <= 1);
  }
  BOOST_TEST(seen_second > 0);  // or no kill came late enough to tell anything
}

}  // namespace thalia::test
