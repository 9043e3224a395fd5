// One mutex guards what is kept, the counts and the reads under way; it is never held while a file
// is read.
#include "thalia/formats/param_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/checked_sum.h"
#include "base/fail.h"
#include "base/parallel.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "format/payload.h"
#include "formats/params/flights.h"
#include "formats/params/layer.h"
#include "formats/params/make_param_source.h"
#include "io/system/process.h"
#include "thalia/state/tensor_value.h"

namespace thalia::formats::params {
namespace {

// Which tensors are in memory, and which one goes next.
//
// After each call bytes_ is the sum of what is kept, and at most the budget if there is one. So
// pinned bytes are at most the budget too, and evicting all others always makes the room that
// would_keep() has seen.

/// Tensors under numbers. Externally synchronised.
class Residents {
 public:
  /// @param budget of all together; nullopt: any, and only pinned ones are kept.
  explicit Residents(std::optional<std::uint64_t> budget) : budget_(budget) {}

  /// Counts as a use. nullptr if it is not kept; valid until the next keep().
  const Tensor* use(std::size_t number);
  bool holds(std::size_t number) const { return kept_.contains(number); }
  /// Whether keep() would keep it, room or not being made.
  bool would_keep(std::uint64_t bytes, bool pinned) const noexcept;
  /// Keeps a tensor that is not kept yet, if there can be room.
  void keep(std::size_t number, const Tensor& tensor, bool pinned);

  std::size_t count() const noexcept { return kept_.size(); }
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t pinned_bytes() const noexcept { return pinned_bytes_; }
  std::uint64_t evictions() const noexcept { return evictions_; }

 private:
  struct Kept {
    Tensor tensor;
    std::optional<std::list<std::size_t>::iterator> use;  ///< in uses_, unless pinned
  };

  void evict_oldest();

  std::optional<std::uint64_t> budget_;
  std::unordered_map<std::size_t, Kept> kept_;
  std::list<std::size_t> uses_;  ///< of those that are not pinned, the latest last
  std::uint64_t bytes_ = 0;
  std::uint64_t pinned_bytes_ = 0;
  std::uint64_t evictions_ = 0;
};

const Tensor* Residents::use(std::size_t number) {
  const auto found = kept_.find(number);
  if (found == kept_.end()) return nullptr;
  Kept& kept = found->second;
  if (kept.use) uses_.splice(uses_.end(), uses_, *kept.use);
  return &kept.tensor;
}

bool Residents::would_keep(std::uint64_t bytes, bool pinned) const noexcept {
  if (!budget_) return pinned;
  return bytes <= *budget_ - pinned_bytes_;
}

void Residents::evict_oldest() {
  const auto oldest = kept_.find(uses_.front());
  bytes_ -= oldest->second.tensor.bytes().size();
  ++evictions_;
  kept_.erase(oldest);
  uses_.pop_front();
}

void Residents::keep(std::size_t number, const Tensor& tensor, bool pinned) {
  const std::uint64_t bytes = tensor.bytes().size();
  if (!would_keep(bytes, pinned) || holds(number)) return;
  while (budget_ && bytes > *budget_ - bytes_) evict_oldest();
  // Where memory ends on the way, nothing is counted that is not there.
  const auto place = kept_.emplace(number, Kept{.tensor = tensor, .use = {}}).first;
  if (!pinned) {
    try {
      place->second.use = uses_.insert(uses_.end(), number);
    } catch (...) {
      kept_.erase(place);
      throw;
    }
  }
  bytes_ += bytes;
  if (pinned) pinned_bytes_ += bytes;
}

bool has_id(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return (c & 0x80) == 0; });
}

std::optional<std::uint64_t> budget_of(const ParamSourceOptions& options, std::uint64_t total) {
  std::optional<std::uint64_t> budget = options.budget_bytes;
  const auto at_most = [&](std::uint64_t bytes) {
    budget = std::min(bytes, budget.value_or(bytes));
  };
  if (options.budget_share) {
    const double share = *options.budget_share;
    if (!(share >= 0 && share <= 1))
      fail_argument(ErrorCode::bad_argument, "budget_share", fmt::format("{}", share), "0 to 1");
    // The product of a total near 2^64 may round up to what no integer holds.
    const double bytes = static_cast<double>(total) * share;
    at_most(bytes >= static_cast<double>(total) ? total : static_cast<std::uint64_t>(bytes));
  }
  if (options.budget_cap_bytes) at_most(*options.budget_cap_bytes);
  return budget;
}

}  // namespace
}  // namespace thalia::formats::params

namespace thalia {

struct ParamSource::Impl {
  Impl(std::shared_ptr<const formats::OpenedFile> from, const ParamSourceOptions& options)
      : source(std::move(from)),
        prefetch_layers(options.prefetch_layers),
        model(options.model ? *options.model : next_model_namespace()) {
    CheckedSum sum;
    for (const AnyTensor& tensor : source->facts().tensors) {
      params.push_back(info_of(tensor, options));
      sum += params.back().bytes;
    }
    for (std::size_t i = 0; i < params.size(); ++i) {
      by_name.emplace(params[i].name, i);
      if (params[i].id) by_id.emplace(*params[i].id, i);
      if (params[i].key) by_key.emplace(*params[i].key, i);
    }
    total = sum.value().value_or(UINT64_MAX);
    budget = formats::params::budget_of(options, total);
    residents = formats::params::Residents(budget);
  }

  ParamInfo info_of(const AnyTensor& tensor, const ParamSourceOptions& options) const {
    ParamInfo info{.name = tensor.name, .layout = tensor.layout};
    info.bytes = format::payload_length(tensor.layout).value_or(tensor.stored_bytes.value_or(0));
    info.stored_bytes =
        tensor.stored_bytes.value_or(std::min(info.bytes, source->facts().file_bytes));
    info.layer = formats::params::layer_of(info.name);
    info.pinned = (info.layer && *info.layer < prefetch_layers) ||
                  (options.small_bytes && info.bytes <= *options.small_bytes);
    if (formats::params::has_id(info.name)) {
      info.id = base_param_id(info.name);
      info.key = param_key(model, *info.id);
    }
    return info;
  }

  std::shared_ptr<const formats::OpenedFile> source;
  std::uint64_t prefetch_layers;
  ModelNamespaceId model;
  std::vector<ParamInfo> params;
  std::unordered_map<std::string_view, std::size_t> by_name;
  std::unordered_map<BaseParamId, std::size_t> by_id;
  std::unordered_map<ParamKey, std::size_t> by_key;
  std::uint64_t total = 0;
  std::optional<std::uint64_t> budget;

  io::ThreadLock mutex;
  formats::params::Residents residents{std::nullopt};
  ParamStatistics counts;
  formats::params::Flights<std::size_t, Tensor> flights{mutex};

  // What was decoded has memory already, and is not copied beyond what the limit counts.
  bool is_own(const Tensor& tensor, std::size_t i) const {
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.bytes().data());
    return !source->facts().tensors[i].in_place && address % alignof(std::max_align_t) == 0;
  }

  // What is mapped is copied: an address there may not suit the type, and is not memory of this
  // source's.
  Tensor read(std::size_t i) {
    {
      const std::lock_guard lock(mutex);
      ++counts.misses;
    }
    Tensor tensor = source->read(i);
    return is_own(tensor, i) ? tensor : tensor.owned();
  }

  Tensor load(std::size_t i) {
    const auto kept = [&]() -> std::optional<Tensor> {
      const Tensor* const there = residents.use(i);
      return there == nullptr ? std::nullopt : std::optional(*there);
    };
    const auto keep = [&](const Tensor& tensor) {
      counts.loaded_bytes += tensor.bytes().size();
      residents.keep(i, tensor, params[i].pinned);
    };
    auto [tensor, made] = flights.once(
        i, kept, [&] { return read(i); }, keep);
    if (!made) {
      const std::lock_guard lock(mutex);
      ++counts.hits;
    }
    return std::move(tensor);
  }
};

ParamSource::ParamSource(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

const std::vector<ParamInfo>& ParamSource::params() const noexcept {
  return impl_->params;
}

const ParamInfo* ParamSource::find(std::string_view name) const noexcept {
  const auto found = impl_->by_name.find(name);
  return found == impl_->by_name.end() ? nullptr : &impl_->params[found->second];
}

const ParamInfo* ParamSource::find(BaseParamId id) const noexcept {
  const auto found = impl_->by_id.find(id);
  return found == impl_->by_id.end() ? nullptr : &impl_->params[found->second];
}

const ParamInfo* ParamSource::find(ParamKey key) const noexcept {
  const auto found = impl_->by_key.find(key);
  return found == impl_->by_key.end() ? nullptr : &impl_->params[found->second];
}

ModelNamespaceId ParamSource::model() const noexcept {
  return impl_->model;
}

std::uint64_t ParamSource::total_bytes() const noexcept {
  return impl_->total;
}

std::optional<std::uint64_t> ParamSource::budget_bytes() const noexcept {
  return impl_->budget;
}

Tensor ParamSource::load(std::string_view name) const {
  if (const ParamInfo* const found = find(name))
    return impl_->load(static_cast<std::size_t>(found - params().data()));
  throw UsageError(ErrorCode::not_found,
                   "no such tensor" + suggestion_among(name, params(), &ParamInfo::name),
                   {.tensor = printable(name)});
}

Tensor ParamSource::load(BaseParamId id) const {
  if (const ParamInfo* const found = find(id))
    return impl_->load(static_cast<std::size_t>(found - params().data()));
  throw UsageError(ErrorCode::not_found, "no tensor has this id",
                   {.field = "id", .value = id.to_string()});
}

Tensor ParamSource::load(ParamKey key) const {
  if (const ParamInfo* const found = find(key))
    return impl_->load(static_cast<std::size_t>(found - params().data()));
  throw UsageError(ErrorCode::not_found, "no tensor of this model has this key",
                   {.field = "key", .value = key.to_string()});
}

void ParamSource::prefetch(const Work& work) const {
  std::vector<std::size_t> ahead;
  for (std::size_t i = 0; i < params().size(); ++i)
    if (params()[i].layer && *params()[i].layer < impl_->prefetch_layers) ahead.push_back(i);
  std::stable_sort(ahead.begin(), ahead.end(), [&](std::size_t a, std::size_t b) {
    return *params()[a].layer < *params()[b].layer;
  });
  // What would not be kept is not worth its reading.
  std::vector<std::size_t> wanted;
  CheckedSum total;
  {
    const std::lock_guard lock(impl_->mutex);
    for (const std::size_t i : ahead) {
      CheckedSum with = total;
      with += params()[i].bytes;
      if (impl_->residents.holds(i) || !with.value() ||
          !impl_->residents.would_keep(*with.value(), true))
        continue;
      total = with;
      wanted.push_back(i);
    }
  }
  std::mutex telling;
  std::uint64_t done = 0;
  parallel_for(wanted.size(), resolve_threads(work.threads, wanted.size()), [&](std::size_t i) {
    stop_if_cancelled(work.cancel);
    static_cast<void>(impl_->load(wanted[i]));
    if (!work.progress) return;
    const std::lock_guard lock(telling);
    done += params()[wanted[i]].bytes;
    work.progress(done, *total.value());
  });
}

ParamStatistics ParamSource::statistics() const {
  const std::lock_guard lock(impl_->mutex);
  ParamStatistics now = impl_->counts;
  now.evictions = impl_->residents.evictions();
  now.resident_tensors = impl_->residents.count();
  now.resident_bytes = impl_->residents.bytes();
  now.pinned_bytes = impl_->residents.pinned_bytes();
  return now;
}

}  // namespace thalia

namespace thalia::formats {

ParamSource make_param_source(std::shared_ptr<const OpenedFile> source,
                              const ParamSourceOptions& options) {
  return ParamSource(std::make_shared<ParamSource::Impl>(std::move(source), options));
}

}  // namespace thalia::formats
