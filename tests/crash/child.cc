#include "crash/child.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace thalia::crash {
namespace {

constexpr unsigned kMostSeconds = 60;

class Announcer : public Teller {
 public:
  void attempt(std::string_view name) override { call("thalia_crash_attempt", name); }
  void promise(std::string_view name) override { call("thalia_crash_promise", name); }
  void finish(std::string_view) override {}

 private:
  static void call(const char* function, std::string_view name) {
    if (void* const found = loaded_function(function); found != nullptr)
      reinterpret_cast<void (*)(const char*)>(found)(std::string(name).c_str());
  }
};

}  // namespace

int in_child(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kMostSeconds);
    try {
      work();
      ::_exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

int perform_in_child(const Operation& operation, const std::filesystem::path& folder,
                     const Environment& environment) {
  return in_child([&] {
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execl("/proc/self/exe", "crash", "--perform", operation.name, folder.c_str(), nullptr);
    throw std::runtime_error("this program cannot be run");
  });
}

void check_ended(const Operation& operation, int status) {
  if (status != 0)
    throw std::runtime_error(fmt::format("{}: ended with status {}", operation.name, status));
}

void perform(const Operation& operation, const std::filesystem::path& folder) {
  Announcer announcer;
  operation.run(folder, announcer);
}

void use_memory(bool wanted) {
  static const char* const before = std::getenv("TMPDIR");
  static const std::string kept = before != nullptr ? before : "";
  if (wanted && ::access("/dev/shm", W_OK | X_OK) == 0) {
    ::setenv("TMPDIR", "/dev/shm", 1);
  } else if (before != nullptr) {
    ::setenv("TMPDIR", kept.c_str(), 1);
  } else {
    ::unsetenv("TMPDIR");
  }
}

void* loaded_function(const char* name) {
  return ::dlsym(RTLD_DEFAULT, name);
}

}  // namespace thalia::crash
