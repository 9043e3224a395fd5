// SOURCE_DATE_EPOCH is what reproducible-builds.org specifies. It is looked at only where a file is
// to be reproducible: some shells set it for all that runs in them, and a training job's
// checkpoints should say when they were saved.
#include "io/output/save_time.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/fail.h"
#include "base/utf8.h"

namespace thalia::io {

std::uint64_t save_time(const OutputOptions& output) {
  if (!output.reproducible) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(now).count());
  }
  const char* const text = std::getenv("SOURCE_DATE_EPOCH");
  if (text == nullptr) return 0;
  std::uint64_t seconds = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, seconds);
  if (error != std::errc() || stop != end) {
    fail_argument(ErrorCode::bad_argument, "SOURCE_DATE_EPOCH",
                  fmt::format("'{}'", printable(text, 40)), "seconds since 1970");
  }
  return seconds;
}

}  // namespace thalia::io
