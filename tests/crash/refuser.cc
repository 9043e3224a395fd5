// A library that is loaded before the C library and has an allocation fail: operator new throws
// then, and malloc returns null, no matter who called them.
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <string_view>

namespace {

// The allocation that fails, counted from when it was asked for; 0: none.
std::atomic<long> refused_at = 0;
std::atomic<long> allocations = 0;
std::atomic<long> refusals = 0;
std::atomic<bool> is_due = false;  ///< in place of one that must not fail

// The C library ends the process if it cannot note the destructor of a thread's variable.
bool must_not_fail(const void* caller) {
  Dl_info info;
  return ::dladdr(caller, &info) != 0 && info.dli_sname != nullptr &&
         std::string_view(info.dli_sname) == "__cxa_thread_atexit_impl";
}

bool is_refused(const void* caller) {
  const long at = refused_at.load(std::memory_order_relaxed);
  if (at == 0 || (++allocations != at && !is_due.exchange(false))) return false;
  if (must_not_fail(caller)) {
    is_due = true;
    return false;
  }
  ++refusals;
  errno = ENOMEM;
  return true;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
// The C library's own names of them.
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void thalia_crash_refuse(long number) {
  allocations = 0;
  refused_at = number;
}
long thalia_crash_refusals() {
  return refusals;
}

void* malloc(std::size_t bytes) {
  return is_refused(__builtin_return_address(0)) ? nullptr : __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  return is_refused(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  return is_refused(__builtin_return_address(0)) ? nullptr : __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return is_refused(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  void* const memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
}
#pragma GCC visibility pop
