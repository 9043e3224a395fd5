// A tensor is made piece by piece by the chain machinery, out of what is held and the deltas over
// it, or of files alone, and held against its content hash before anybody sees it. Memory that the
// follower holds is never written twice: a changed tensor gets new memory, so that readers keep the
// old. What differs in the server's memory is kept aside, in lines of a few elements, so that
// applying it copies just these.
#include "store/follow/held_tensors.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/read/tensor_reading.h"
#include "state/delta/tensor_chain.h"
#include "state/precision/glob.h"
#include "state/value/path_names.h"
#include "store/follow/tensor_batch.h"
#include "thalia/state/brain.h"

namespace thalia::store {
namespace {

auto order_of(std::string_view region, std::string_view name) {
  return std::pair(region, name);
}

auto order_of(const FollowedValue& value) {
  return order_of(value.facts.region, value.facts.name);
}

bool is_same(const FollowedTensor& a, const FollowedTensor& b) {
  return a.content_hash == b.content_hash && a.layout == b.layout &&
         a.logical_bytes == b.logical_bytes;
}

[[noreturn]] void fail_fit(ErrorCode code, const FollowedTensor& tensor, std::string value,
                           std::string bound) {
  throw UsageError(code, "the server's memory does not fit the tensor",
                   {.region = printable(tensor.region),
                    .tensor = printable(tensor.name),
                    .value = std::move(value),
                    .bound = std::move(bound)});
}

void require_fit(const ServerMemory& memory, const FollowedTensor& tensor) {
  const TensorLayout& layout = tensor.layout;
  const bool is_dense = layout.encoding == Encoding::dense;
  if (memory.dtype && (*memory.dtype != layout.dtype || !is_dense))
    fail_fit(ErrorCode::dtype_mismatch, tensor, std::string(dtype_name(*memory.dtype)),
             fmt::format("{}{}", dtype_name(layout.dtype),
                         is_dense ? "" : fmt::format(", {}", encoding_name(layout.encoding))));
  if (memory.shape && *memory.shape != layout.shape)
    fail_fit(ErrorCode::shape_mismatch, tensor, memory.shape->to_string(),
             layout.shape.to_string());
  if (memory.bytes.size() != tensor.logical_bytes)
    fail_fit(ErrorCode::size_mismatch, tensor, fmt::format("{} bytes", memory.bytes.size()),
             std::to_string(tensor.logical_bytes));
}

}  // namespace

const FollowedValue* find_value(const FollowedValues& values, std::string_view region,
                                std::string_view name) noexcept {
  const auto found =
      std::ranges::lower_bound(values, order_of(region, name), {},
                               [](const FollowedValue& value) { return order_of(value); });
  return found != values.end() && order_of(*found) == order_of(region, name) ? &*found : nullptr;
}

std::optional<state::HeldBytes> HeldTensors::find(const state::TensorKey& key) const {
  // Matrices of connections are not held.
  const FollowedValue* const found =
      key.region.empty() ? nullptr : find_value(*values_, key.region, key.name);
  if (found == nullptr) return std::nullopt;
  return state::HeldBytes{.tensor = found->facts,
                          .crc32 = found->crc32,
                          .bytes = std::make_shared<state::TensorBytes>(found->value)};
}

void TensorChoice::add_memory(std::string_view region, std::string_view name,
                              const ServerMemory& memory) {
  add({.region = std::string(region), .names = {std::string(name)}}, memory);
}

void TensorChoice::add_memory(std::span<const std::string> names, const ServerMemory& memory) {
  if (names.empty()) fail_argument(ErrorCode::bad_argument, "names", "none", "one or more");
  add({.region = std::nullopt, .names = {names.begin(), names.end()}}, memory);
}

void TensorChoice::add(Names names, const ServerMemory& memory) {
  for (const std::string& name : names.names) {
    if (!places_.contains({names.region, name})) continue;
    throw UsageError(ErrorCode::bad_argument, "the tensor has memory already",
                     {.region = printable(names.region.value_or("")), .tensor = printable(name)});
  }
  for (const std::string& name : names.names) places_[{names.region, name}] = memory_.size();
  memory_.emplace_back(std::move(names), memory);
}

std::optional<std::size_t> TensorChoice::find(std::string_view region,
                                              std::string_view name) const {
  if (memory_.empty()) return std::nullopt;
  auto found = places_.find({std::string(region), std::string(name)});
  if (found == places_.end()) found = places_.find({std::nullopt, std::string(name)});
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

MutableByteSpan TensorChoice::memory_of(const FollowedTensor& tensor,
                                        const FollowedValue* before) const {
  ServerMemory memory;
  if (const auto known = find(tensor.region, tensor.name)) {
    memory = memory_[*known].second;
  } else if (before != nullptr && before->facts.layout == tensor.layout) {
    return before->memory;
  } else if (options_.memory) {
    memory = options_.memory(tensor);
  }
  const bool is_own = !memory.bytes.empty() || memory.dtype;
  if (is_own) require_fit(memory, tensor);
  return memory.bytes;
}

bool TensorChoice::takes(std::string_view region, std::string_view name, Role role) const {
  if (options_.include.empty()) return true;
  const std::string path = state::path_in_region(region, component_of_role(role), name);
  const state::TensorNames names{.path = path, .region = region, .name = name};
  return std::ranges::any_of(options_.include,
                             [&](const std::string& glob) { return names.fit(glob); });
}

void TensorChoice::check(const FollowedValues& values) const {
  std::vector<std::vector<const FollowedValue*>> users(memory_.size());
  for (const FollowedValue& value : values)
    if (const auto known = find(value.facts.region, value.facts.name))
      users[*known].push_back(&value);
  for (std::size_t i = 0; i < users.size(); ++i) {
    const Names& names = memory_[i].first;
    if (users[i].empty())
      throw UsageError(ErrorCode::not_found, "the state has no tensor for this memory",
                       {.region = printable(names.region.value_or("")),
                        .tensor = printable(names.names.front())});
    for (std::size_t k = 1; k < users[i].size(); ++k) {
      // By another name it is the same tensor, which shares its memory; by the same name it is not.
      const FollowedTensor& one = users[i][k]->facts;
      for (std::size_t j = 0; j < k; ++j) {
        if (users[i][j]->facts.name != one.name) continue;
        throw UsageError(ErrorCode::duplicate, "two regions have a tensor for this memory",
                         {.region = printable(one.region),
                          .tensor = printable(one.name),
                          .value = printable(users[i][j]->facts.region),
                          .bound = "one region"});
      }
    }
  }
}

std::shared_ptr<FollowedValues> prepare_values(const state::FileChain& chain,
                                               const FollowedValues& before, bool trusted,
                                               const TensorChoice& choice, SpareMemory& spare) {
  const detail::OpenFile& top = chain.file(0);
  const ReadOptions& read = chain.options().read;
  auto values = std::make_shared<FollowedValues>();
  TensorBatch batch(top, read, *values, spare);
  for (std::uint32_t r = 0; r < top.region_count(); ++r) {
    const RegionView region = top.region_view(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      const TensorView view = region.tensor(t);
      if (!choice.takes(region.name(), view.name(), view.role())) continue;
      stop_if_cancelled(read.work.cancel);
      container::with_names(top, region.name(), view.name(), [&] {
        const state::TensorKey key{.region = std::string(region.name()),
                                   .name = std::string(view.name())};
        state::TensorChain made = *state::TensorChain::find(chain, 0, key);
        FollowedValue& out = values->emplace_back();
        out.facts = {made.result(), key.region, key.name, view.role()};
        out.crc32 = made.crc32();
        const FollowedValue* const old = find_value(before, key.region, key.name);
        out.memory = choice.memory_of(out.facts, old);
        const bool stays = trusted && old != nullptr && is_same(old->facts, out.facts) &&
                           old->memory.data() == out.memory.data();
        if (stays) {
          out.value = old->value;
          return;
        }
        out.is_changed = old == nullptr || !is_same(old->facts, out.facts);
        // What a file claims to hold has to fit; what is held already does.
        if (old == nullptr || old->facts.logical_bytes < out.facts.logical_bytes)
          made.budget().take("payload", out.facts.logical_bytes);
        batch.add(std::move(made));
      });
    }
  }
  batch.run();
  std::ranges::sort(*values, {}, [](const FollowedValue& value) { return order_of(value); });
  choice.check(*values);
  return values;
}

bool has_patches(const FollowedValue& value) noexcept {
  return std::ranges::any_of(value.pieces,
                             [](const PatchedPiece& piece) { return !piece.patches.empty(); });
}

void apply_patches(FollowedValue& value) noexcept {
  for (const PatchedPiece& piece : value.pieces) {
    std::size_t at = 0;
    for (const Patch& patch : piece.patches) {
      std::memcpy(value.memory.data() + patch.begin, piece.bytes.data() + at, patch.length);
      at += patch.length;
    }
  }
}

}  // namespace thalia::store
