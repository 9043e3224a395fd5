#include "io/system/random.h"

#include <sys/random.h>

#include "io/system/posix_error.h"

namespace thalia::io {

void fill_random(MutableByteSpan out) {
  // A signal may leave some out, if more than 256 bytes are asked for (getrandom(2)).
  while (!out.empty()) {
    const auto got = retry_interrupted([&] { return ::getrandom(out.data(), out.size(), 0); });
    if (got < 0) throw_errno("getrandom", {});
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace thalia::io
