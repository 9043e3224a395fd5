// A save as the queue of an AsyncSaver sees it: so many bytes to copy, and work for later.
#pragma once

#include <cstdint>
#include <memory>

#include "thalia/async_save.h"
#include "thalia/options.h"
#include "thalia/types.h"
#include "thalia/writer.h"

namespace thalia::container {

/// Called in this order: bytes(), copy(), begin(), each by the thread that asks for the save, then
/// run(), once, by any thread. Until begin() it may be dropped, and nothing has happened.
class BackgroundSave {
 public:
  BackgroundSave() = default;
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;
  virtual ~BackgroundSave() = default;

  /// What copy() needs; 0 if nothing is copied.
  virtual std::uint64_t bytes() const noexcept = 0;
  /// What the caller asked for.
  virtual const Work& work() const noexcept = 0;
  /// Copies every payload into `memory`, which is page-aligned and holds bytes(), on up to
  /// `threads` threads (0: one a core).
  virtual void copy(MutableByteSpan memory, unsigned threads) = 0;
  /// From here on the payloads are those in `memory`, which stays until run() is back, and `work`
  /// takes the place of the caller's.
  virtual void begin(ByteSpan memory, Work work) noexcept = 0;
  virtual SaveResult run() = 0;
};

/// As AsyncSaver::save_async() of a writer.
SaveHandle<> save_async(AsyncSaver& saver, std::unique_ptr<BackgroundSave> save);

}  // namespace thalia::container
