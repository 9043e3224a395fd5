// A version is added in an order that a crash may end anywhere: its number is given first, on the
// disk, so that it never comes twice; then what is known of it; then its file, with which it is a
// version; then the digest. What is beside no file is swept up by the next Pool.
#include "thalia/store/pool.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "state/delta/save_state.h"
#include "store/pool/member_text.h"
#include "store/pool/pool_folder.h"
#include "store/pool/state_part.h"
#include "store/pool/training_state.h"
#include "store/run/names.h"
#include "store/save/impl.h"
#include "store/save/payload.h"

namespace thalia {
namespace {

void check_rating(const Rating& rating) {
  if (store::is_rating(rating)) return;
  fail_argument(ErrorCode::bad_argument, "rating",
                fmt::format("mu {}, sigma {}", rating.mu, rating.sigma),
                "finite numbers, sigma 0 or more");
}

// Everything but the file, which `write` makes and tells the size of.
template <typename Write>
PoolAddResult add_version(const store::SaveSession& session, std::string_view phase,
                          std::uint64_t step, const Rating& current, const Write& write) {
  const PoolView before = store::list_pool(session.run).view;
  const std::uint64_t version = before.next_version;
  check_option("version", version, 1, store::kMaxVersion);
  PoolMember member{{.phase = session.run.config().phase(phase).name, .step = step},
                    {.rating = {current.mu, std::max(current.sigma, before.config.sigma_floor)},
                     .rated_at = store::now_seconds()},
                    version,
                    store::pool_name(version, step, session.run.config().extension)};
  member.promoted_at = member.rated_at;
  member.path = session.run.pool() / member.name;
  store::write_version(session, version);
  store::write_meta(session, member);
  try {
    member.bytes = write(member);
  } catch (...) {
    // Where its digest could not be written, it is a version, and keeps its rating.
    if (!session.files().has_file(member.path))
      session.files().remove(session.run.pool() / (member.name + std::string(store::kMetaEnding)));
    throw;
  }
  PoolAddResult result{std::move(member), store::evict(session)};
  store::write_roster(session);
  return result;
}

store::StatePart stripped(const ChainReader& chain, const std::vector<std::string>& patterns) {
  StateSource state = state_source(chain);
  state::PatternUse use("pool.tensors", patterns);
  store::for_each_tensor(state, [&](const state::TensorNames& names, const TensorSpec&) {
    if (!use.is_empty()) use.see(names);
  });
  use.check();
  const store::TrainingTensors training(state);
  return store::part_of(std::move(state),
                        {.keeps_tensor =
                             [&](const state::TensorNames& names, const TensorSpec& spec) {
                               return patterns.empty() ? !training.has(names, spec)
                                                       : store::fits_any(patterns, names);
                             },
                         .forgets_training = true});
}

}  // namespace

PoolView read_pool(const Run& run) {
  return store::list_pool(store::RunFolder::of(run)).view;
}

Pool::Pool(RunWriter& run) : run_(run) {
  const auto& impl = store::impl_of(run);
  const auto held = impl.lock();
  const store::SaveSession session = impl.session();
  session.files().make_folders(session.run.pool(), session.options.durability);
  const store::PoolListing listing = store::list_pool(session.run);
  for (const store::PoolDamage& damage : listing.damaged)
    session.warn(damage.path.string() + ": " + damage.sentence);
  if (impl.is_alone()) store::sweep(session, listing);
  store::evict(session);
  store::write_roster(session);
}

PoolView Pool::view() const {
  return read_pool(run_.run());
}

PoolAddResult Pool::add(std::string_view phase, std::uint64_t step, const Rating& current) {
  check_rating(current);
  const auto& impl = store::impl_of(run_);
  const auto held = impl.lock();
  const store::SaveSession session = impl.session();
  LoadOptions load{.step = step, .on_warning = session.options.on_warning};
  load.read = session.files().reading(session.options.cancel);
  const LoadedCheckpoint loaded = run_.run().load(phase, load);
  store::StatePart part = stripped(loaded.chain, session.run.config().pool->tensors);
  return add_version(session, phase, step, current, [&](const PoolMember& member) {
    Value source = Value::object();
    source.add("phase", member.phase);
    source.add("step", member.step);
    source.add("file", loaded.entry.file);
    Value of_pool = Value::object();
    of_pool.add("version", member.version);
    of_pool.add("source", std::move(source));
    part.metadata["pool"] = std::move(of_pool);
    return state::save_state(std::move(part).finish(), member.path,
                             SaveOptions{.sha256 = true,
                                         .output = session.output(false),
                                         .work = {.cancel = session.options.cancel}})
        .file_bytes;
  });
}

PoolAddResult Pool::add_bytes(std::string_view phase, std::uint64_t step, const Rating& current,
                              ByteSpan bytes) {
  check_rating(current);
  const auto& impl = store::impl_of(run_);
  const auto held = impl.lock();
  const store::SaveSession session = impl.session();
  return add_version(session, phase, step, current, [&](const PoolMember& member) {
    return store::write_payload(session, member.path, bytes, session.output(false)).bytes;
  });
}

PoolMember Pool::rate(std::uint64_t version, const Rating& rating, std::uint64_t games_played,
                      double win_rate) {
  check_rating(rating);
  if (!store::is_win_rate(win_rate))
    fail_argument(ErrorCode::bad_argument, "win_rate", fmt::format("{}", win_rate), "0 to 1");
  if (version == 0)
    fail_argument(ErrorCode::bad_argument, "version", "0", "a version",
                  "the ratings of anchors stay");
  const auto& impl = store::impl_of(run_);
  const auto held = impl.lock();
  const store::SaveSession session = impl.session();
  const PoolView pool = store::list_pool(session.run).view;
  const auto found = std::ranges::find(pool.versions, version, &PoolMember::version);
  if (found == pool.versions.end())
    throw UsageError(ErrorCode::not_found, fmt::format("the pool has no version {}", version),
                     {.path = session.run.pool().string()});
  PoolMember member = *found;
  store::rate(member, {rating, games_played, win_rate, store::now_seconds()});
  store::write_meta(session, member);
  store::write_roster(session);
  return member;
}

}  // namespace thalia
