// A stream at work: the threads, what they share, and what the caller takes from them. The members'
// order is that of their lifetimes: the threads are declared last, because they use all others.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/stopwatch.h"
#include "container/file/open_file.h"
#include "container/stream/payload.h"
#include "container/stream/plan.h"
#include "container/stream/scheduler.h"
#include "container/stream/strategy.h"
#include "container/stream/worker.h"
#include "thalia/stream.h"

namespace thalia::container {

/// Externally synchronised. Destroyed, it ends the threads and waits for them.
class StreamSession {
 public:
  /// Starts to read the plan's units. @throws IoError if no thread is to be had.
  StreamSession(std::shared_ptr<const detail::OpenFile> file, StreamPlan plan,
                const StreamOptions& options);
  /// The same with workers that make the bytes of each unit, which is a part of one tensor.
  /// @param strategy of the plan's and the options'.
  StreamSession(std::shared_ptr<const detail::OpenFile> file, StreamPlan plan,
                const StreamOptions& options, std::unique_ptr<const ReadStrategy> strategy,
                StreamWorker worker);
  ~StreamSession();
  StreamSession(const StreamSession&) = delete;
  StreamSession& operator=(const StreamSession&) = delete;

  std::optional<StreamedTensor> next();
  /// Ends the threads and waits for them: no memory is written to afterwards.
  void stop() noexcept;
  StreamResult result() const;

 private:
  void start_threads();
  void feed() noexcept;
  bool begin_before(std::size_t end);
  bool begin(std::size_t tensor);
  MutableByteSpan caller_memory(const StreamTensor& tensor) const;
  void cancel() noexcept;
  std::optional<std::size_t> next_number();
  void pass_over(const StreamTensor& tensor, const std::exception_ptr& error) const;

  const std::shared_ptr<const detail::OpenFile> file_;
  const StreamPlan plan_;
  const StreamOptions options_;
  const std::unique_ptr<const ReadStrategy> strategy_;
  const StreamWorker worker_;
  const std::shared_ptr<StreamScheduler> scheduler_;
  std::vector<std::unique_ptr<StreamPayload>> payloads_;
  std::size_t begun_ = 0;  ///< of the feeder: tensors before this one have their memory
  StreamWork work_;
  const Stopwatch watch_;
  StreamResult result_;
  std::optional<std::stop_callback<std::function<void()>>> on_cancel_;
  std::vector<std::jthread> threads_;
};

/// @throws UsageError for an option that cannot be.
void check_options(const StreamOptions& options);
/// What hands out what the session reads.
StreamReader stream_of(std::unique_ptr<StreamSession> session);

}  // namespace thalia::container
