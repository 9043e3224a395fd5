// Memory that is a process's own, which pages of mapped files are not.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <stop_token>
#include <string>
#include <thread>

namespace thalia::test {

inline std::uint64_t private_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) * 1024;
  }
  return 0;
}

// The most private memory that the process had while `work` ran, above what it had before.
template <typename Work>
std::uint64_t peak_of(Work work) {
  const std::uint64_t before = private_bytes();
  std::uint64_t most = 0;
  // Stopped by its destructor, also where the work throws.
  std::jthread watch([&](const std::stop_token& done) {
    while (!done.stop_requested()) {
      most = std::max(most, private_bytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  work();
  watch.request_stop();
  watch.join();
  return most > before ? most - before : 0;
}

}  // namespace thalia::test
