// What streaming a chain needs of a StreamReader besides its public side.
#pragma once

#include <memory>

#include "container/stream/session.h"
#include "thalia/stream.h"

namespace thalia::container {

struct StreamAccess {
  /// @throws UsageError for an option that cannot be.
  static void check(const StreamOptions& options);
  static StreamReader open(std::unique_ptr<StreamSession> session);
};

}  // namespace thalia::container
