// What has to be known beside a figure before it can be compared with another one: build, machine,
// file systems, load. A fact that cannot be found out is "unknown", which never stops a run.
#include "environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include "thalia/version.h"

namespace thalia::bench {
namespace {

// The first line of a file that starts with `key`, without key, colon and space.
std::string line_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t value = line.find_first_not_of(": \t", key.size());
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "unknown";
}

std::string kernel() {
  utsname names;
  if (::uname(&names) != 0) return "unknown";
  return std::string(names.sysname) + " " + names.release + " " + names.machine;
}

// Kind and options of the file system that holds the folder: of all mount points that are a prefix
// of its path, the longest; of equal ones the last, which hides the others.
std::string file_system(const std::filesystem::path& folder) {
  std::error_code error;
  const std::string wanted = std::filesystem::canonical(folder, error).string();
  if (error) return "none: " + error.message();
  std::ifstream mounts("/proc/self/mounts");
  std::string best = "unknown", longest;
  for (std::string line; std::getline(mounts, line);) {
    std::string device, point, kind, options;
    std::istringstream(line) >> device >> point >> kind >> options;
    const bool holds = point == "/" || wanted == point || wanted.starts_with(point + "/");
    if (holds && point.size() >= longest.size()) {
      longest = point;
      best = kind + " (" + options + ")";
    }
  }
  return best;
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  char text[32];
  std::tm utc;
  ::gmtime_r(&seconds, &utc);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string load_average() {
  double loads[3];
  if (::getloadavg(loads, 3) != 3) return "unknown";
  std::ostringstream text;
  text << loads[0] << " " << loads[1] << " " << loads[2];
  return text.str();
}

}  // namespace

Facts environment(const Settings& settings) {
  std::string build = THALIA_BUILDTYPE;
  if (std::string(THALIA_SANITIZE) != "none") build += ", " THALIA_SANITIZE;
#ifdef __clang__
  const char* const compiler = "clang " __clang_version__;
#else
  const char* const compiler = "gcc " __VERSION__;
#endif
  return {{"time", now()},
          {"thalia", std::string(library_version())},
          {"compiler", compiler},
          {"build", build},
          {"processor", line_of("/proc/cpuinfo", "model name")},
          {"cores", std::to_string(std::thread::hardware_concurrency())},
          {"memory", line_of("/proc/meminfo", "MemTotal")},
          {"kernel", kernel()},
          {"huge pages in shared memory",
           line_of("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "")},
          {"memory folder", file_system(settings.memory)},
          {"disk folder", file_system(settings.disk)},
          {"load", load_average()}};
}

std::string build_warning() {
  std::string why;
#ifndef NDEBUG
  why += " assertions are on;";
#endif
#ifndef __OPTIMIZE__
  why += " nothing is optimised;";
#endif
  if (std::string(THALIA_SANITIZE) != "none") why += " a sanitizer is on;";
  if (!why.empty()) why.pop_back();
  return why.empty() ? why : why.substr(1);
}

}  // namespace thalia::bench
