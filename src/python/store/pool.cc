// The pool of earlier models: its members, their ratings, and who is drawn.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/buffers.h"
#include "python/store/store.h"
#include "thalia/store/pool.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

PoolView pool_of(const Run& run) {
  const Unlocked unlocked;
  return read_pool(run);
}

// action(pool) on a thread of its own. What begins to use the pool sweeps and lists it, once.
template <typename Action>
auto with_pool(PyRunWriter& self, Action action) {
  const std::shared_ptr<RunWriter> run = self.get();
  if (!self.pool)
    self.pool = interruptible([&](const std::stop_token&) { return std::make_shared<Pool>(*run); });
  return interruptible([&, pool = self.pool](const std::stop_token&) { return action(*pool); });
}

PoolAddResult add_to_pool(PyRunWriter& self, const std::string& phase, std::uint64_t step,
                          const Rating& current) {
  return with_pool(self, [&](Pool& pool) { return pool.add(phase, step, current); });
}

PoolAddResult add_bytes_to_pool(PyRunWriter& self, const std::string& phase, std::uint64_t step,
                                const Rating& current, nb::handle data) {
  const HeldBuffer held(data, HeldBuffer::Use::read);
  return with_pool(self,
                   [&](Pool& pool) { return pool.add_bytes(phase, step, current, held.bytes()); });
}

PoolMember rate_in_pool(PyRunWriter& self, std::uint64_t version, const Rating& rating,
                        std::uint64_t games_played, double win_rate) {
  return with_pool(self,
                   [&](Pool& pool) { return pool.rate(version, rating, games_played, win_rate); });
}

File cached_file(PoolCache& cache, const PoolMember& member) {
  return file_of(interruptible([&](const std::stop_token&) { return cache.get(member); }));
}

void bind_members(nb::module_& module) {
  bind_result<Rating>(module, "Rating", "An estimate of skill, and how uncertain it is.",
                      field("mu", &Rating::mu), field("sigma", &Rating::sigma))
      .def(
          "__init__",
          [](Rating* self, double mu, double sigma) {
            new (self) Rating{.mu = mu, .sigma = sigma};
          },
          nb::arg("mu") = Rating().mu, nb::arg("sigma") = Rating().sigma)
      .def_prop_ro("conservative", &Rating::conservative, "mu - 3 sigma.");
  bind_result<PoolRating>(
      module, "PoolRating", "What games have shown of a member of the pool.",
      field("rating", &PoolRating::rating), field("games_played", &PoolRating::games_played),
      field("win_rate", &PoolRating::win_rate, "0 to 1."),
      field("rated_at", &PoolRating::rated_at, "Since when, in seconds since 1970."));
  bind_result<PoolMember>(
      module, "PoolMember", "A version of the model in the pool, or an anchor.",
      field("version", &PoolMember::version, "0 of an anchor."),
      field("name", &PoolMember::name, "The gate's, if it is an anchor; else the file's."),
      field("path", &PoolMember::path), field("phase", &PoolMember::phase),
      field("step", &PoolMember::step), field("file_bytes", &PoolMember::bytes),
      field("rating", &PoolMember::rating), field("games_played", &PoolMember::games_played),
      field("win_rate", &PoolMember::win_rate, "0 to 1."),
      field("rated_at", &PoolMember::rated_at,
            "Since when it has this rating, in seconds since 1970."),
      field("promoted_at", &PoolMember::promoted_at, "Seconds since 1970."),
      field("is_anchor", &PoolMember::is_anchor, "A gate, whose rating does not change."),
      field("history", &PoolMember::history, "The ratings that it had before, the oldest first."));
  bind_result<PoolAddResult>(module, "PoolAddResult", "What an addition to the pool did.",
                             field("member", &PoolAddResult::member),
                             field("evicted", &PoolAddResult::evicted,
                                   "Files of the oldest versions, which went for it."));
}

void bind_view(nb::module_& module) {
  bind_result<PoolConfig>(
      module, "PoolConfig", "How a run's pool is kept.", field("phase", &PoolConfig::phase),
      field("folder", &PoolConfig::folder), field("keep", &PoolConfig::keep),
      field("cache", &PoolConfig::cache), field("sigma_floor", &PoolConfig::sigma_floor),
      field("self_weight", &PoolConfig::self_weight),
      field("pool_weight", &PoolConfig::pool_weight),
      field("baseline_weight", &PoolConfig::baseline_weight),
      field("baseline", &PoolConfig::baseline), field("anchors", &PoolConfig::anchors),
      field("tensors", &PoolConfig::tensors));
  bind_result<PoolDraw>(module, "PoolDraw", "Whom the model plays next.",
                        field("kind", &PoolDraw::kind, "\"self\": the model plays itself."),
                        field("member", &PoolDraw::member, "None where the model plays itself."));
  bind_result<PoolView>(module, "PoolView", "A run's pool as it was read.",
                        field("config", &PoolView::config),
                        field("versions", &PoolView::versions, "In the order of their numbers."),
                        field("anchors", &PoolView::anchors, "Gates; their ratings do not change."),
                        field("next_version", &PoolView::next_version))
      .def("draw", draw_opponent, nb::arg("seed"), nb::arg("index"),
           "The opponent of game `index`: the same for the same members, seed and index, on every "
           "machine.");
}

}  // namespace

void bind_pool(nb::module_& module, RunWriterClass& writer) {
  bind_members(module);
  bind_view(module);
  module.def("read_pool", pool_of, nb::arg("run"));
  writer.def("pool_add", add_to_pool, nb::arg("phase"), nb::arg("step"), nb::arg("current"))
      .def("pool_add_bytes", add_bytes_to_pool, nb::arg("phase"), nb::arg("step"),
           nb::arg("current"), nb::arg("data"))
      .def("pool_rate", rate_in_pool, nb::arg("version"), nb::arg("rating"),
           nb::arg("games_played"), nb::arg("win_rate"));
  nb::class_<PoolCache>(module, "PoolCache")
      .def(
          "__init__",
          [](PoolCache* self, std::size_t capacity, const std::string& access, unsigned threads) {
            new (self) PoolCache(capacity, read_options(access, "on_first_touch", threads));
          },
          nb::arg("capacity"), nb::arg("access"), nb::arg("threads"))
      .def("get", cached_file, nb::arg("member"))
      .def("__len__", &PoolCache::size)
      .def_prop_ro("hits", &PoolCache::hits)
      .def_prop_ro("misses", &PoolCache::misses);
}

}  // namespace thalia::python
