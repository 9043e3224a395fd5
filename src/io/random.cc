#include "io/random.h"

#include <sys/random.h>

#include "io/posix_error.h"

namespace thalia::io {

void fill_random(MutableByteSpan out) {
  // Up to 256 bytes come whole or not at all (getrandom(2)).
  if (::getrandom(out.data(), out.size(), 0) != static_cast<ssize_t>(out.size())) {
    throw_errno("getrandom", {});
  }
}

}  // namespace thalia::io
