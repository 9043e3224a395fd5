// liburing's calls. The bytes of a write are taken as it is submitted; that it is complete is known
// only once the program has seen its completion. A program that looks for completions in another
// way than io_uring_wait_cqes() has writes that never end, which makes the model the stricter.
#include <dlfcn.h>
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "crash/recorder/recorder.h"

using namespace thalia::crash;

namespace {

struct Operation {
  std::uint64_t number;
  int forced = 0;  ///< the errno that it ends with, since it was not done
};

struct Rings {
  std::uint64_t last = 0;
  std::map<std::pair<const io_uring*, std::uint64_t>, Operation> open;  ///< by ring and tag
};

Rings& rings() {
  static Rings all;
  return all;
}

bool is_write(const io_uring_sqe& entry) {
  return entry.opcode == IORING_OP_WRITE || entry.opcode == IORING_OP_WRITE_FIXED;
}

// Records one entry, after the fault that may befall it. `behind` is the number of the operation
// that it is linked after, or 0. Returns its own number, 0 where nobody wants to know.
std::uint64_t submit_one(const io_uring* ring, io_uring_sqe& entry, std::uint64_t behind,
                         bool& broken_link) {
  const bool is_sync = entry.opcode == IORING_OP_FSYNC;
  if (entry.opcode == IORING_OP_NOP || entry.opcode == IORING_OP_READ ||
      entry.opcode == IORING_OP_READ_FIXED || !is_watched(entry.fd))
    return 0;
  if (!is_write(entry) && !is_sync) {
    put_unknown("an operation of a ring");
    return 0;
  }
  Operation operation{++rings().last};
  const Strike strike = next_strike(is_sync ? CallType::ring_sync : CallType::ring,
                                    is_sync ? "sync on a ring" : "write on a ring");
  const unsigned half = entry.len / 2 & ~511u;
  if (broken_link || strike.error != 0) {
    operation.forced = broken_link ? ECANCELED : strike.error;
    entry.opcode = IORING_OP_NOP;
    broken_link = true;
  } else if (strike.cut && is_write(entry) && half > 0) {
    entry.len = half;
    broken_link = true;  // a short write ends its chain
  }
  rings().open.insert_or_assign({ring, entry.user_data}, operation);
  if (operation.forced != 0) return operation.number;
  Record record{.kind = is_sync ? Kind::submit_sync : Kind::submit_write};
  record.data_only = is_sync && (entry.fsync_flags & IORING_FSYNC_DATASYNC) != 0 ? 1 : 0;
  record.inode = inode_of(entry.fd);
  record.operation = operation.number;
  record.other_operation = behind;
  if (is_sync) {
    put(record);
  } else {
    record.offset = entry.off;
    const iovec bytes{reinterpret_cast<void*>(entry.addr), entry.len};
    put(record, {}, {}, {&bytes, 1});
  }
  return operation.number;
}

void complete(const io_uring* ring, io_uring_cqe& entry) {
  const Turn turn;
  const auto found = rings().open.find({ring, entry.user_data});
  if (found == rings().open.end()) return;
  const Operation operation = found->second;
  rings().open.erase(found);
  if (operation.forced != 0) {
    entry.res = -operation.forced;
    return;
  }
  put({.kind = Kind::complete, .operation = operation.number, .result = entry.res});
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
int io_uring_submit(io_uring* ring) {
  static const auto real =
      reinterpret_cast<int (*)(io_uring*)>(::dlsym(RTLD_NEXT, "io_uring_submit"));
  const Turn turn;
  std::uint64_t behind = 0;
  bool broken_link = false;
  for (unsigned at = ring->sq.sqe_head; at != ring->sq.sqe_tail; ++at) {
    io_uring_sqe& entry = ring->sq.sqes[at & *ring->sq.kring_mask];
    const bool linked = (entry.flags & IOSQE_IO_LINK) != 0;
    const std::uint64_t number = submit_one(ring, entry, behind, broken_link);
    behind = linked ? number : 0;
    if (!linked) broken_link = false;
  }
  return real(ring);
}

int io_uring_wait_cqes(io_uring* ring, io_uring_cqe** out, unsigned count,
                       __kernel_timespec* timeout, sigset_t* signals) {
  static const auto real =
      reinterpret_cast<decltype(&io_uring_wait_cqes)>(::dlsym(RTLD_NEXT, "io_uring_wait_cqes"));
  const int error = real(ring, out, count, timeout, signals);
  if (error == 0) complete(ring, **out);
  return error;
}
}
#pragma GCC visibility pop
