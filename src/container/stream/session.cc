// Threads and memory of a stream. One thread runs feed(): it gives each tensor its memory, in the
// plan's order, and tells the scheduler. payloads_[i] is written by the feeder before that, used by
// a worker that has asked the scheduler for it, and moved from by the caller after the tensor is
// complete; the scheduler's lock orders the three, and no other lock is needed. The caller's thread
// touches the rest: results, order, errors.
#include "container/stream/session.h"

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "container/read/quantized_arrays.h"
#include "format/extent.h"
#include "io/memory/aligned_buffer.h"
#include "io/memory/allocation_limit.h"

namespace thalia::container {
namespace {

// More than any machine has, and small enough that rounding up and adding cannot wrap.
constexpr std::uint64_t kLargestAllocation = 1ull << 62;

// What a tensor takes of the stream's own memory: whole pages for direct reads.
std::uint64_t memory_of(std::uint64_t logical_bytes) {
  return format::align_up(logical_bytes, io::kDirectAlignment);
}

// Memory of the stream's own, which counts until it is dropped: by the caller, or, of codes, by the
// worker that has restored them. It shares the scheduler, because a caller may keep a tensor longer
// than the stream.
class StreamMemory {
 public:
  using GiveBack = void (StreamScheduler::*)(std::uint64_t) noexcept;
  StreamMemory(std::shared_ptr<StreamScheduler> scheduler, std::uint64_t bytes, GiveBack give_back)
      : scheduler_(std::move(scheduler)), give_back_(give_back), buffer_(memory_of(bytes)) {}
  ~StreamMemory() { (*scheduler_.*give_back_)(buffer_.bytes().size()); }
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;

  std::byte* data() const noexcept { return buffer_.bytes().data(); }

 private:
  std::shared_ptr<StreamScheduler> scheduler_;
  const GiveBack give_back_;
  io::AlignedBuffer buffer_;
};

StreamPlace place_of(std::uint64_t bytes, const std::shared_ptr<StreamScheduler>& scheduler,
                     StreamMemory::GiveBack give_back) {
  auto memory = std::make_shared<StreamMemory>(scheduler, bytes, give_back);
  const MutableByteSpan span(memory->data(), bytes);
  return {span, std::move(memory)};
}

// The order in which tensors are handed out, by their numbers in the plan; nothing for
// as_completed. It differs from the order of reading: within a window, reading follows the file.
std::vector<std::size_t> delivery_order(const StreamPlan& plan, StreamOrder order) {
  if (order == StreamOrder::as_completed) return {};
  std::vector<std::size_t> delivery(plan.tensors.size());
  std::iota(delivery.begin(), delivery.end(), std::size_t{0});
  const auto before = [&](std::size_t a, std::size_t b) {
    const StreamTensor& first = plan.tensors[a];
    const StreamTensor& second = plan.tensors[b];
    return order == StreamOrder::file ? first.offset < second.offset : first.index < second.index;
  };
  std::stable_sort(delivery.begin(), delivery.end(), before);
  return delivery;
}

}  // namespace

StreamSession::StreamSession(std::shared_ptr<const detail::OpenFile> file, StreamPlan plan,
                             const StreamOptions& options)
    : StreamSession(std::move(file), std::move(plan), options, nullptr, run_stream_worker) {}

StreamSession::StreamSession(std::shared_ptr<const detail::OpenFile> file, StreamPlan plan,
                             const StreamOptions& options,
                             std::unique_ptr<const ReadStrategy> strategy, StreamWorker worker)
    : file_(std::move(file)),
      plan_(std::move(plan)),
      options_(options),
      strategy_(strategy ? std::move(strategy)
                         : std::make_unique<const ReadStrategy>(*file_, plan_, options_)),
      worker_(std::move(worker)),
      scheduler_(std::make_shared<StreamScheduler>(
          strategy_->tensor_bytes(), std::max(options_.queue_depth, strategy_->workers()),
          delivery_order(plan_, options_.order), plan_.tensors.size())),
      payloads_(plan_.tensors.size()),
      work_{*file_,
            plan_,
            *strategy_,
            *scheduler_,
            payloads_,
            options_.work.progress,
            static_cast<bool>(options_.damaged)} {
  // Empty tensors come first in the plan and are in no unit, so no worker would complete them.
  for (std::size_t i = 0; i < plan_.tensors.size() && plan_.tensors[i].stored_bytes == 0; ++i)
    scheduler_->complete_tensor(i);
  on_cancel_.emplace(options_.work.cancel, [this] { cancel(); });
  start_threads();
}

StreamSession::~StreamSession() {
  stop();
}

void StreamSession::stop() noexcept {
  // Clearing joins; the workers wait for their reads first, so no memory is written to afterwards.
  scheduler_->stop();
  threads_.clear();
}

// Called on the thread that asks for the stop: it only ends the stream, and the caller throws in
// next().
void StreamSession::cancel() noexcept {
  try {
    file_->named([&] { stop_if_cancelled(options_.work.cancel); });
  } catch (...) {
    scheduler_->fail(std::current_exception());
  }
}

void StreamSession::start_threads() {
  try {
    threads_.emplace_back([this] { feed(); });
    for (unsigned i = 0; i < strategy_->workers(); ++i)
      threads_.emplace_back([this] {
        try {
          worker_(work_);
        } catch (...) {
          scheduler_->fail(std::current_exception());
        }
      });
  } catch (const std::system_error& error) {
    // One to feed and one to work are enough.
    if (threads_.size() > 1) return;
    stop();
    throw IoError("pthread_create", error.code().value(),
                  {.path = strategy_->source().path.string()});
  }
}

// The caller's destination may wait until tensors before it were handed out, so everything that
// completes those has to be under way when it is asked: the unit too in which they end and the next
// one begins. Its first tensor has memory before it is read, which is the only one that can take
// the unit without a copy; its worker waits for the others. A block that is larger than an extent
// is never whole in memory, and proves nothing before its last byte: all its tensors take their
// bytes as they pass.
void StreamSession::feed() noexcept {
  try {
    for (std::size_t i = 0; i < plan_.units.size(); ++i) {
      const StreamUnit& unit = plan_.units[i];
      const bool needs_all = !options_.destination || unit.end - unit.begin > kStreamExtent;
      begun_ = std::max(begun_, unit.first_tensor);  // beyond empty tensors
      if (!begin_before(needs_all ? unit.last_tensor : unit.first_tensor + 1)) return;
      if (!scheduler_->push(i) || !begin_before(unit.last_tensor)) return;
    }
    scheduler_->close();
  } catch (...) {
    scheduler_->fail(std::current_exception());
  }
}

// Units overlap in tensors: a tensor at the edge of one unit goes on in the next. Each gets its
// memory once.
bool StreamSession::begin_before(std::size_t end) {
  while (begun_ < end) {
    if (!work_.named(begun_, [&] { return begin(begun_); })) return false;
    scheduler_->note_begun(++begun_);
  }
  return true;
}

bool StreamSession::begin(std::size_t tensor) {
  const StreamTensor& facts = plan_.tensors[tensor];
  StreamPlace out{.bytes = caller_memory(facts)};
  const bool is_ours = out.bytes.empty();
  const bool has_codes = plan_.restores && plan_.quantization_of(facts) != nullptr;
  // The file says how large the tensor is: a small file must not make us allocate without limit.
  const std::uint64_t most = std::min(
      io::allocation_limit(file_->options().input.limits, facts.stored_bytes), kLargestAllocation);
  const std::uint64_t own = is_ours ? facts.result_bytes : 0;
  const std::uint64_t codes = has_codes ? facts.logical_bytes : 0;
  if (std::max(own, codes) > most)
    fail_limit("payload", "max_allocation_bytes", std::max(own, codes), most);
  if (own + codes != 0 && !scheduler_->admit(memory_of(own) + memory_of(codes))) return false;
  StreamPlace staged;
  if (is_ours) out = place_of(own, scheduler_, &StreamScheduler::release);
  if (has_codes) staged = place_of(codes, scheduler_, &StreamScheduler::withdraw);
  payloads_[tensor] =
      std::make_unique<StreamPayload>(plan_, facts, std::move(out), std::move(staged));
  return true;
}

MutableByteSpan StreamSession::caller_memory(const StreamTensor& tensor) const {
  if (!options_.destination) return {};
  const MutableByteSpan out = options_.destination(tensor.view, tensor.result_bytes);
  if (!out.empty() && out.size() != tensor.result_bytes) {
    fail_argument(ErrorCode::size_mismatch, "destination", fmt::format("{} bytes", out.size()),
                  std::to_string(tensor.result_bytes));
  }
  return out;
}

std::optional<StreamedTensor> StreamSession::next() {
  while (true) {
    const auto number = next_number();
    if (!number) return std::nullopt;
    const auto payload = std::move(payloads_[*number]);
    const StreamTensor& facts = plan_.tensors[*number];
    // Taken here, not when the threads end, so that the time that the caller takes afterwards does
    // not count.
    result_.seconds = watch_.seconds();
    if (payload && payload->error()) {
      ++result_.damaged;
      pass_over(facts, payload->error());
      continue;
    }
    ++result_.tensors;
    StreamedTensor item{.tensor = facts.view, .index = facts.index, .layout = facts.layout};
    const StreamQuantized* const quantized = plan_.quantization_of(facts);
    if (payload) {
      item.bytes = payload->out().bytes;
      item.memory = payload->out().memory;
      item.quantized = payload->quantized();
    } else if (quantized != nullptr && !plan_.restores) {  // a tensor without elements
      item.quantized = QuantizedArrays(quantized->entry, quantized->side, {}).view();
    }
    return item;
  }
}

void StreamSession::pass_over(const StreamTensor& tensor, const std::exception_ptr& error) const {
  try {
    std::rethrow_exception(error);
  } catch (const Error& damage) {
    options_.damaged(tensor.view, damage);
  }
}

std::optional<std::size_t> StreamSession::next_number() {
  // A thread that has got all tensors gets the end, even if something fails afterwards.
  const bool all = result_.tensors + result_.damaged == plan_.tensors.size();
  const auto admitted = [&](std::size_t tensor) {
    const auto& payload = payloads_[tensor];
    return payload && payload->out().memory ? memory_of(payload->out().bytes.size()) : 0;
  };
  if (!all) {
    if (const auto number = scheduler_->wait_next(admitted)) return number;
  }
  // Before anything is thrown: the caller may free its memory as soon as it sees the error.
  stop();
  if (all) return std::nullopt;
  if (const std::exception_ptr error = scheduler_->error()) std::rethrow_exception(error);
  throw UsageError(ErrorCode::wrong_state, "the stream was ended before");
}

StreamResult StreamSession::result() const {
  StreamResult result = result_;
  result.bytes_read = work_.bytes_read.load();
  result.io = work_.read_directly.load() ? IoMode::direct : IoMode::buffered;
  result.io_fallback = strategy_->fallback();
  return result;
}

}  // namespace thalia::container
