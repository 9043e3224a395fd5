// Followers. The handle keeps the last update, which the texts that C has of it lie in.
#include "thalia/c/follow.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "c/arguments.h"
#include "c/choice.h"
#include "c/guard.h"
#include "c/handles.h"
#include "c/sized.h"
#include "thalia/store/follow.h"

using namespace thalia;
using namespace thalia::c;

struct thalia_follower {
  Follower follower;
  FollowUpdate last{};
  std::string path{};  ///< of it
};

struct thalia_followed_state {
  std::shared_ptr<const FollowedState> state;
  std::string path;
  std::vector<Tensor> tensors;
};

namespace {

Follower& following(thalia_follower* follower) {
  return required(follower, "follower").follower;
}
const thalia_followed_state& held(const thalia_followed_state* state) {
  return required(state, "state");
}

std::vector<std::string> texts_of(const char* const* texts, std::uint32_t count,
                                  std::string_view argument) {
  std::vector<std::string> all;
  if (count != 0) require(texts, argument);
  for (std::uint32_t i = 0; i < count; ++i) all.emplace_back(required_text(texts[i], argument));
  return all;
}

FollowOptions follow_options(const thalia_follow_options* given) {
  const thalia_follow_options from = taken(given, "options");
  FollowOptions options;
  if (from.phase != nullptr) options.phase = from.phase;
  if (from.into != nullptr) options.into = from.into;
  options.include = texts_of(from.include, from.include_count, "include");
  if (from.interval_ms != 0) options.interval = std::chrono::milliseconds(from.interval_ms);
  options.polling = flag(from.polling, "polling");
  options.lease = !flag(from.no_lease, "no_lease");
  options.output.durability = chosen(kDurabilities, from.durability, "durability");
  options.output.link = OutputLink::followed;
  ReadOptions& read = options.chain.read;
  read.input.access = chosen(kAccesses, from.access, "access");
  read.work.threads = from.threads;
  if (from.memory_bytes != 0) read.work.memory_bytes = from.memory_bytes;
  if (from.warning != nullptr)
    options.on_warning = [tell = from.warning, context = from.context](
                             const std::string& sentence) { tell(context, sentence.c_str()); };
  return options;
}

thalia_followed_tensor tensor_of(const FollowedTensor& facts, const Tensor* value) {
  thalia_followed_tensor tensor{};
  tensor.size = sizeof tensor;
  tensor.name = to_text(facts.name);
  tensor.region = to_text(facts.region);
  if (value != nullptr) tensor.data = value->bytes().data();
  tensor.bytes = facts.logical_bytes;
  tensor.dtype = static_cast<thalia_dtype>(facts.layout.dtype);
  tensor.role = static_cast<thalia_role>(facts.role);
  tensor.encoding = static_cast<thalia_encoding>(facts.layout.encoding);
  tensor.rank = facts.layout.shape.rank();
  std::ranges::copy(facts.layout.shape.extents(), tensor.shape);
  tensor.nnz = facts.layout.nnz;
  tensor.wide_indices = facts.layout.wide_indices ? 1 : 0;
  return tensor;
}

std::function<void(const FollowedTensor&)> hook_of(thalia_follow_hook hook, void* context) {
  if (hook == nullptr) return {};
  return [=](const FollowedTensor& facts) {
    const thalia_followed_tensor tensor = tensor_of(facts, nullptr);
    hook(context, &tensor);
  };
}

void keep_update(thalia_follower& of, FollowUpdate update, thalia_follow_update* out) {
  of.last = std::move(update);
  of.path = of.last.file.string();
  if (out == nullptr) return;
  const FollowUpdate& from = of.last;
  thalia_follow_update to{};
  to.phase = to_text(from.phase);
  to.path = to_text(of.path);
  to.reason = to_text(from.reason);
  to.number = from.number;
  to.step = from.step;
  to.file_bytes = from.bytes;
  to.saved_ns = from.saved_ns;
  to.bytes_read = from.bytes_read;
  to.bytes_changed = from.bytes_changed;
  to.changed = from.changed.size();
  to.removed = from.removed.size();
  to.seconds = from.seconds;
  to.latency = from.latency;
  to.deltas = from.deltas;
  to.fell_back = from.fell_back ? 1 : 0;
  to.went_back = from.went_back ? 1 : 0;
  give(*out, to, "update");
}

// prepare() or wait(): an update, or THALIA_END.
template <typename Call>
thalia_status wait_by(thalia_follower* follower, std::int64_t timeout_ms,
                      thalia_follow_update* update, const Call& call) {
  Follower& of = following(follower);
  if (update != nullptr) checked_size(*update, "update");
  std::optional<std::chrono::milliseconds> timeout;
  if (timeout_ms >= 0) timeout = std::chrono::milliseconds(timeout_ms);
  std::optional<FollowUpdate> found = call(of, timeout);
  if (!found) return THALIA_END;
  keep_update(*follower, *std::move(found), update);
  return THALIA_OK;
}

void give_tensor(const thalia_followed_state& state, std::size_t index,
                 thalia_followed_tensor& out) {
  give(out, tensor_of(state.state->tensors()[index], &state.tensors[index]), "tensor");
}

}  // namespace

thalia_status thalia_follower_open(const char* folder, const thalia_follow_options* options,
                                   thalia_follower** follower) {
  return guarded([&] {
    thalia_follower*& place = emptied(follower, "follower");
    place = new thalia_follower{Follower(required_text(folder, "folder"), follow_options(options))};
  });
}

void thalia_follower_close(thalia_follower* follower) {
  delete follower;
}

thalia_status thalia_follower_add_memory(thalia_follower* follower,
                                         const thalia_server_memory* memory) {
  return guarded([&] {
    Follower& to = following(follower);
    const thalia_server_memory from = taken(&required(memory, "memory"), "memory");
    ServerMemory own(memory_at(from.data, from.bytes, "data"));
    if (flag(from.has_layout, "has_layout")) {
      check_option("rank", from.rank, 0, THALIA_MAX_RANK);
      own.dtype = code<DType>(from.dtype, kDTypeCount, "dtype");
      own.shape = Shape(std::span<const std::uint64_t>(from.shape, from.rank));
    }
    const std::vector<std::string> names = texts_of(from.names, from.name_count, "names");
    if (from.region == nullptr) return to.add_memory(names, own);
    check_option("name_count", from.name_count, 1, 1);
    to.add_memory(from.region, names.front(), own);
  });
}

thalia_status thalia_follower_wait(thalia_follower* follower, int64_t timeout_ms,
                                   thalia_follow_update* update) {
  return guarded([&] {
    return wait_by(follower, timeout_ms, update,
                   [](Follower& of, const auto& timeout) { return of.wait(timeout); });
  });
}

thalia_status thalia_follower_prepare(thalia_follower* follower, int64_t timeout_ms,
                                      thalia_follow_update* update) {
  return guarded([&] {
    return wait_by(follower, timeout_ms, update,
                   [](Follower& of, const auto& timeout) { return of.prepare(timeout); });
  });
}

thalia_status thalia_follower_apply(thalia_follower* follower, const thalia_follow_hooks* hooks,
                                    thalia_follow_update* update) {
  return guarded([&] {
    Follower& of = following(follower);
    const thalia_follow_hooks from = taken(hooks, "hooks");
    if (update != nullptr) checked_size(*update, "update");
    keep_update(*follower,
                of.apply({.before = hook_of(from.before, from.context),
                          .after = hook_of(from.after, from.context)}),
                update);
  });
}

thalia_status thalia_follower_changed(const thalia_follower* follower, uint64_t index,
                                      thalia_text* name) {
  return guarded([&] {
    const std::vector<std::string>& changed = required(follower, "follower").last.changed;
    thalia_text& place = required(name, "name");
    if (index >= changed.size())
      throw UsageError(ErrorCode::not_found, "the last update changed no such tensor",
                       {.field = "index",
                        .value = std::to_string(index),
                        .bound = fmt::format("less than {}", changed.size())});
    place = to_text(changed[index]);
  });
}

void thalia_follower_wake(thalia_follower* follower) {
  if (follower != nullptr) follower->follower.wake();
}

thalia_status thalia_follower_state(const thalia_follower* follower,
                                    thalia_followed_state** state) {
  return guarded([&] {
    thalia_followed_state*& place = emptied(state, "state");
    std::shared_ptr<const FollowedState> current =
        required(follower, "follower").follower.current();
    if (!current) throw UsageError(ErrorCode::not_found, "the follower holds no state");
    auto made = std::make_unique<thalia_followed_state>();
    made->path = current->file().string();
    for (const FollowedTensor& facts : current->tensors())
      made->tensors.push_back(current->at(facts.region, facts.name));
    made->state = std::move(current);
    place = made.release();
  });
}

void thalia_followed_state_close(thalia_followed_state* state) {
  delete state;
}

thalia_status thalia_followed_state_describe(const thalia_followed_state* state,
                                             thalia_followed_state_info* info) {
  return guarded([&] {
    const thalia_followed_state& of = held(state);
    thalia_followed_state_info to{};
    to.phase = to_text(of.state->phase());
    to.path = to_text(of.path);
    to.metadata_json = to_text(of.state->metadata_json());
    to.step = of.state->step();
    to.tensor_count = of.tensors.size();
    give(required(info, "info"), to, "info");
  });
}

thalia_status thalia_followed_state_tensor(const thalia_followed_state* state, uint64_t index,
                                           thalia_followed_tensor* tensor) {
  return guarded([&] {
    const thalia_followed_state& of = held(state);
    thalia_followed_tensor& place = required(tensor, "tensor");
    checked_size(place, "tensor");
    if (index >= of.tensors.size())
      throw UsageError(ErrorCode::not_found, "the state has no such tensor",
                       {.field = "index",
                        .value = std::to_string(index),
                        .bound = fmt::format("less than {}", of.tensors.size())});
    give_tensor(of, index, place);
  });
}

thalia_status thalia_followed_state_find(const thalia_followed_state* state, const char* region,
                                         const char* name, thalia_followed_tensor* tensor) {
  return guarded([&] {
    const thalia_followed_state& of = held(state);
    const std::string_view in = required_text(region, "region");
    const std::string_view named = required_text(name, "name");
    thalia_followed_tensor& place = required(tensor, "tensor");
    checked_size(place, "tensor");
    const auto all = of.state->tensors();
    const auto found = std::ranges::find_if(
        all, [&](const FollowedTensor& one) { return one.region == in && one.name == named; });
    if (found == all.end()) static_cast<void>(of.state->at(in, named));  // it says what is missing
    give_tensor(of, static_cast<std::size_t>(found - all.begin()), place);
  });
}
