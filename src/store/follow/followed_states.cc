// A state is made whole before anything of what is held changes: its values lie in memory of their
// own or in a file without a name, and what differs in the server's memory is kept aside.
#include "store/follow/followed_states.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/read/reader_of.h"
#include "state/delta/file_chain.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/reader.h"

namespace thalia::store {
namespace {

std::string shown(const FollowedTensor& tensor) {
  return fmt::format("{}/{}", tensor.region, tensor.name);
}

// The caller's mistakes with memory. What a file names wrongly is another one's.
bool is_of_caller(const Error& error) {
  constexpr std::array kCodes{ErrorCode::size_mismatch, ErrorCode::dtype_mismatch,
                              ErrorCode::shape_mismatch, ErrorCode::not_found,
                              ErrorCode::duplicate};
  return dynamic_cast<const UsageError*>(&error) != nullptr &&
         std::ranges::find(kCodes, error.code()) != kCodes.end();
}

}  // namespace

FollowedStates::FollowedStates(const FollowOptions& options, const FollowedFolder& folder,
                               IntoFile& into)
    : options_(options), folder_(folder), into_(into), tensors_(options) {}

std::shared_ptr<const state::HeldBase> FollowedStates::base() const {
  if (!held_) return nullptr;
  if (has_file()) return into_.held(held_->identity);
  return std::make_shared<const HeldTensors>(held_->identity, values_);
}

PreparedState FollowedStates::read(const FollowChoice& choice, const io::EntryFacts& facts,
                                   bool with_held, bool trusted) {
  const auto chain = folder_.open(choice, with_held ? base() : nullptr);
  const Reader top = container::reader_over(chain->link(0).file());
  PreparedState out;
  out.taken = {
      .choice = choice,
      .facts = facts,
      .identity = state::identity_of(chain->file(0), static_cast<unsigned>(chain->size() - 1))};
  FollowUpdate& update = out.update;
  update.phase = choice.phase;
  update.step = choice.step;
  update.bytes = facts.bytes;
  update.file = choice.path;
  update.saved_ns = facts.modified_ns;
  update.deltas = chain->held() == nullptr ? 0 : static_cast<unsigned>(chain->size());
  update.bytes_read = chain->disk_bytes();
  out.metadata_json = top.metadata_json();
  if (has_file()) {
    const StateDifference difference = into_.compare(*chain);
    update.changed = difference.changed;
    update.removed = difference.removed;
    out.writes = !difference.is_empty();
    if (out.writes) update.bytes_changed = into_.prepare(chain);
    return out;
  }
  out.values = prepare_values(*chain, *values_, trusted, tensors_, *spare_);
  for (const FollowedValue& value : *out.values) {
    if (!value.is_changed) continue;
    update.changed.push_back(shown(value.facts));
    update.bytes_changed += value.facts.logical_bytes;
  }
  for (const FollowedValue& value : *values_)
    if (find_value(*out.values, value.facts.region, value.facts.name) == nullptr)
      update.removed.push_back(shown(value.facts));
  return out;
}

bool FollowedStates::is_final(const Error& error) const {
  if (is_of_caller(error)) return true;
  const std::string& path = error.context().path;
  return has_file() && dynamic_cast<const IoError*>(&error) != nullptr &&
         (path == options_.into.string() || path == folder_of(options_.into).string());
}

void FollowedStates::show(PreparedState& state, const FollowHooks& hooks) {
  if (has_file()) {
    if (state.writes) into_.commit();
    return;
  }
  for (; state.next < state.values->size(); ++state.next) {
    FollowedValue& value = (*state.values)[state.next];
    if (!value.is_changed && !has_patches(value)) continue;
    if (hooks.before) hooks.before(value.facts);
    state.has_begun = state.has_begun || has_patches(value);
    apply_patches(value);
    if (hooks.after) hooks.after(value.facts);
  }
}

void FollowedStates::adopt(const PreparedState& state) {
  held_ = state.taken;
  if (!state.values) return;
  std::uint64_t own = 0;
  for (const FollowedValue& value : *state.values)
    if (value.memory.empty()) own += value.facts.logical_bytes;
  spare_->keep(own + own / 8);  // sizes are rounded up
  values_ = state.values;
}

}  // namespace thalia::store

namespace thalia {

std::optional<Tensor> FollowedState::find(std::string_view region, std::string_view name) const {
  const auto found = std::ranges::lower_bound(
      tensors_, std::pair(region, name), {}, [](const FollowedTensor& tensor) {
        return std::pair<std::string_view, std::string_view>(tensor.region, tensor.name);
      });
  if (found == tensors_.end() || found->region != region || found->name != name)
    return std::nullopt;
  return values_[static_cast<std::size_t>(found - tensors_.begin())];
}

Tensor FollowedState::at(std::string_view region, std::string_view name) const {
  if (std::optional<Tensor> found = find(region, name)) return *std::move(found);
  throw UsageError(
      ErrorCode::not_found, "the state has no such tensor",
      {.path = file_.string(), .region = printable(region), .tensor = printable(name)});
}

}  // namespace thalia
