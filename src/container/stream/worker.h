// One thread of a stream: reads units, checks their blocks and hands the bytes to the tensors.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "container/file/open_file.h"
#include "container/read/tensor_reading.h"
#include "container/stream/payload.h"
#include "container/stream/plan.h"
#include "container/stream/scheduler.h"
#include "container/stream/strategy.h"
#include "thalia/error.h"
#include "thalia/options.h"

namespace thalia::container {

/// What the threads of a stream share.
struct StreamWork {
  const detail::OpenFile& file;
  const StreamPlan& plan;
  const ReadStrategy& strategy;
  StreamScheduler& scheduler;
  const std::vector<std::unique_ptr<StreamPayload>>& payloads;  ///< of admitted tensors
  const Progress& progress;
  const bool passes_over_damage;  ///< a damaged tensor is no reason to end

  std::mutex progress_mutex{};
  std::uint64_t progress_bytes = 0;
  std::atomic<std::uint64_t> bytes_read{0};
  std::atomic<bool> read_directly{false};

  /// Runs `action`; an error that passes gets the names of file, region and tensor. The names are
  /// the plan's: the file may have lost its own.
  template <typename Action>
  decltype(auto) named(std::size_t tensor, Action action) const {
    const StreamTensor& facts = plan.tensors[tensor];
    return with_names(file, plan.region_name(facts), plan.tensor_name(facts), action);
  }
  /// The same; but what is wrong with the tensor waits until it is handed out, where the caller
  /// wants to pass over damage.
  template <typename Action>
  void attempt(std::size_t tensor, Action action) const {
    try {
      named(tensor, action);
    } catch (const Error& error) {
      const bool damage = dynamic_cast<const FormatError*>(&error) != nullptr ||
                          dynamic_cast<const IntegrityError*>(&error) != nullptr;
      if (!damage || !passes_over_damage) throw;
      payloads[tensor]->fail(std::current_exception());
    }
  }
  /// So many more bytes of the plan's are done.
  void report(std::uint64_t bytes) {
    if (!progress) return;
    // Called under the lock: the caller's function is not called by two threads at once.
    const std::lock_guard lock(progress_mutex);
    progress_bytes += bytes;
    progress(progress_bytes, plan.total_bytes);
  }
};

/// Takes units from the scheduler until there are none or the stream has ended. What is thrown ends
/// the stream. When this returns, none of its reads is in flight.
using StreamWorker = std::function<void(StreamWork&)>;

/// Reads units of the plan's file.
void run_stream_worker(StreamWork& work);

}  // namespace thalia::container
