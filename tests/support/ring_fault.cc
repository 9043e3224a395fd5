#include "support/ring_fault.h"

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

namespace thalia::test {
namespace {

struct State {
  std::mutex mutex;
  std::optional<RingFaults> faults;
  std::uint64_t seen = 0;
  std::uint64_t struck = 0;
  std::set<std::pair<const io_uring*, std::uint64_t>> not_done;  ///< by ring and tag
};

State& state() {
  static State all;
  return all;
}

bool is_transfer(std::uint8_t code) {
  return code == IORING_OP_READ || code == IORING_OP_WRITE || code == IORING_OP_READ_FIXED ||
         code == IORING_OP_WRITE_FIXED;
}

// Changes one operation that waits to be submitted.
void strike(const io_uring* ring, io_uring_sqe& entry, State& all) {
  if (all.seen++ % all.faults->every != 0) return;
  if (all.faults->operation_error != 0) {
    entry.opcode = IORING_OP_NOP;
    all.not_done.emplace(ring, entry.user_data);
    ++all.struck;
  } else if (is_transfer(entry.opcode) && entry.len > all.faults->longest_transfer) {
    entry.len = all.faults->longest_transfer;
    ++all.struck;
  }
}

}  // namespace

FaultyRings::FaultyRings(const RingFaults& faults) {
  const std::lock_guard lock(state().mutex);
  state().faults = faults;
  state().seen = state().struck = 0;
  state().not_done.clear();
}

FaultyRings::~FaultyRings() {
  const std::lock_guard lock(state().mutex);
  state().faults.reset();
}

std::uint64_t FaultyRings::struck() const {
  const std::lock_guard lock(state().mutex);
  return state().struck;
}

}  // namespace thalia::test

// The linker sends the calls of the library here (--wrap).
using thalia::test::state;
extern "C" {
int __real_io_uring_queue_init(unsigned entries, io_uring* ring, unsigned flags);
int __real_io_uring_submit(io_uring* ring);
int __real_io_uring_wait_cqes(io_uring* ring, io_uring_cqe** out, unsigned count,
                              __kernel_timespec* timeout, sigset_t* signals);

int __wrap_io_uring_queue_init(unsigned entries, io_uring* ring, unsigned flags) {
  {
    auto& all = state();
    const std::lock_guard lock(all.mutex);
    if (all.faults && all.faults->setup_error != 0) return -all.faults->setup_error;
  }
  return __real_io_uring_queue_init(entries, ring, flags);
}

int __wrap_io_uring_submit(io_uring* ring) {
  auto& all = state();
  const std::lock_guard lock(all.mutex);
  if (!all.faults) return __real_io_uring_submit(ring);
  if (all.faults->submission_error != 0) return -all.faults->submission_error;
  const unsigned queued = ring->sq.sqe_tail - ring->sq.sqe_head;
  const unsigned taken = std::min(queued, all.faults->longest_submission);
  if (taken == 0) return 0;
  for (unsigned i = 0; i < taken; ++i)
    thalia::test::strike(ring, ring->sq.sqes[(ring->sq.sqe_head + i) & *ring->sq.kring_mask], all);
  ring->sq.sqe_tail -= queued - taken;
  const int submitted = __real_io_uring_submit(ring);
  ring->sq.sqe_tail += queued - taken;
  return submitted;
}

int __wrap_io_uring_wait_cqes(io_uring* ring, io_uring_cqe** out, unsigned count,
                              __kernel_timespec* timeout, sigset_t* signals) {
  {
    auto& all = state();
    const std::lock_guard lock(all.mutex);
    if (all.faults && all.faults->wait_error != 0) return -all.faults->wait_error;
  }
  const int error = __real_io_uring_wait_cqes(ring, out, count, timeout, signals);
  if (error != 0) return error;
  auto& all = state();
  const std::lock_guard lock(all.mutex);
  if (all.faults && all.not_done.erase({ring, (*out)->user_data}) != 0)
    (*out)->res = -all.faults->operation_error;
  return 0;
}
}
