// A follower, its states and their tensors. Anybody who looks at a tensor keeps the state, and
// memory of the server's own that the state lies in, whatever becomes of the follower.
//
// wait() and prepare() run on a thread of their own, and Ctrl-C ends them. apply() runs on the
// caller's, as its hooks take locks which that thread may have.
#include "thalia/store/follow.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "base/busy.h"
#include "python/buffers.h"
#include "python/calls.h"
#include "python/gil.h"
#include "python/options.h"
#include "python/results.h"
#include "python/sparse_arrays.h"
#include "python/store/store.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;
using Names = std::vector<std::string>;

/// Buffers of the server's own. Added with the GIL held; let go of by the last who has it.
class ServerBuffers {
 public:
  MutableByteSpan add(nb::handle buffer) {
    held_.emplace_back(buffer, HeldBuffer::Use::write);
    return held_.back().writable();
  }

 private:
  std::vector<HeldBuffer> held_;
};
using SharedBuffers = std::shared_ptr<ServerBuffers>;

SharedBuffers server_buffers() {
  return {new ServerBuffers, [](ServerBuffers* last) {
            // Once the interpreter ends nobody may let go.
            if (const Locked locked; locked) delete last;
          }};
}

class MemoryCallback : public nb::object {
 public:
  using nb::object::object;
  // NOLINTNEXTLINE(readability-identifier-naming): nanobind's name
  static constexpr auto Name = nb::detail::const_name(
      "collections.abc.Callable[[FollowedTensor], tuple[str | None, tuple[int, ...] | None, "
      "typing.Any] | None]");
};
class TensorCallback : public nb::object {
 public:
  using nb::object::object;
  // NOLINTNEXTLINE(readability-identifier-naming): nanobind's name
  static constexpr auto Name =
      nb::detail::const_name("collections.abc.Callable[[FollowedTensor], object]");
};
class WarningsCallback : public nb::object {
 public:
  using nb::object::object;
  // NOLINTNEXTLINE(readability-identifier-naming): nanobind's name
  static constexpr auto Name =
      nb::detail::const_name("collections.abc.Callable[[list[str]], object]");
};

ServerMemory memory_in(ServerBuffers& held, const std::optional<std::string>& dtype,
                       const std::optional<Shape>& shape, nb::handle buffer) {
  ServerMemory memory(held.add(buffer));
  if (dtype) memory.dtype = dtype_of(*dtype);
  memory.shape = shape;
  return memory;
}

FollowMemory memory_callback(nb::object callback, const SharedBuffers& held) {
  if (callback.is_none()) return {};
  return [call = held_object(std::move(callback)), held](const FollowedTensor& tensor) {
    ServerMemory memory;
    with_gil([&] {
      const nb::object given = (*call)(tensor);
      if (given.is_none()) return;
      const auto [dtype, shape, buffer] =
          nb::cast<std::tuple<std::optional<std::string>, std::optional<Shape>, nb::object>>(given);
      memory = memory_in(*held, dtype, shape, buffer);
    });
    return memory;
  };
}

std::function<void(const FollowedTensor&)> tensor_hook(const nb::object& callback) {
  if (callback.is_none()) return {};
  return [held = held_object(callback)](const FollowedTensor& tensor) {
    with_gil([&] { (*held)(tensor); });
  };
}

struct PyState {
  std::shared_ptr<const FollowedState> state;
  SharedBuffers held;
};

struct StateTensor {
  FollowedTensor facts;
  Tensor value;
  PyState of;
};

std::vector<Payload> sparse_arrays(const StateTensor& tensor) {
  const Unlocked unlocked;
  return arrays_of(tensor.value.encoding(), tensor, tensor.value);
}

ListOf<StateTensor> state_tensors(const PyState& self) {
  nb::list out;
  for (const FollowedTensor& facts : self.state->tensors())
    out.append(StateTensor{facts, self.state->at(facts.region, facts.name), self});
  return out;
}

// How long close() waits for another thread's call, which may be in a callback and close it itself.
constexpr std::chrono::seconds kClosing{1};

struct PyFollower {
  std::shared_ptr<StoreWarnings> warnings =
      std::make_shared<StoreWarnings>("the follower's warnings");
  SharedBuffers held = server_buffers();
  std::shared_ptr<Follower> follower;  ///< none once it was closed
  Busy busy{};

  PyFollower(const Path& folder, FollowOptions options, const nb::object& memory) {
    options.on_warning = [told = warnings](const std::string& sentence) { told->add(sentence); };
    options.memory = memory_callback(memory, held);
    const Unlocked unlocked;
    follower = make_ended_unlocked<Follower>(folder, options);
  }
  PyFollower(const PyFollower&) = delete;
  PyFollower& operator=(const PyFollower&) = delete;
  ~PyFollower() { close(); }

  // Kept by a call that lets go of the GIL: another thread may close this one meanwhile.
  std::shared_ptr<Follower> get() const {
    if (follower) return follower;
    throw UsageError(ErrorCode::wrong_state, "the follower was closed");
  }
  // What waits in another thread ends, and has it until then.
  void close() {
    std::shared_ptr<Follower> last = std::exchange(follower, nullptr);
    if (!last) return;
    last->wake();
    const Unlocked unlocked;
    const auto end = std::chrono::steady_clock::now() + kClosing;
    while (last.use_count() > 1 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    last.reset();
  }
};

// For one call at a time.
class FollowerUse {
 public:
  explicit FollowerUse(PyFollower& of) : call_(of.busy, "the follower", {}), follower_(of.get()) {}
  Follower& operator*() const noexcept { return *follower_; }
  Follower* operator->() const noexcept { return follower_.get(); }

 private:
  Busy::Call call_;
  std::shared_ptr<Follower> follower_;
};

std::optional<std::chrono::milliseconds> milliseconds_of(std::optional<double> seconds) {
  constexpr double kLongest = 1e9;
  if (!seconds) return std::nullopt;
  const double most = *seconds >= 0 ? std::min(*seconds, kLongest) : 0;  // NaN is no time
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(most * 1000)));
}

// Hands warnings to `tell` while `wait` goes on, which may be for good.
template <typename Wait>
std::optional<FollowUpdate> waited(PyFollower& self, const nb::object& tell, Wait wait) {
  const FollowerUse use(self);
  return interruptible(
      [&](const std::stop_token& stop) -> std::optional<FollowUpdate> { return wait(*use, stop); },
      [&] {
        const std::vector<std::string> sentences = self.warnings->take();
        if (!sentences.empty()) tell(text_list(sentences));
      });
}

std::optional<FollowUpdate> wait_for(PyFollower& self, std::optional<double> timeout,
                                     const WarningsCallback& tell) {
  return waited(self, tell, [&](Follower& follower, const std::stop_token& stop) {
    return follower.wait(milliseconds_of(timeout), stop);
  });
}

std::optional<FollowUpdate> prepare_for(PyFollower& self, std::optional<double> timeout,
                                        const WarningsCallback& tell) {
  return waited(self, tell, [&](Follower& follower, const std::stop_token& stop) {
    return follower.prepare(milliseconds_of(timeout), stop);
  });
}

FollowUpdate apply_now(PyFollower& self, const TensorCallback& before,
                       const TensorCallback& after) {
  const FollowerUse use(self);
  const FollowHooks hooks{.before = tensor_hook(before), .after = tensor_hook(after)};
  const Unlocked unlocked;
  return use->apply(hooks);
}

std::optional<PyState> current_state(const PyFollower& self) {
  std::shared_ptr<const FollowedState> state = self.get()->current();
  if (!state) return std::nullopt;
  return PyState{std::move(state), self.held};
}

std::optional<std::string> reason_of(const std::string& reason) {
  if (reason.empty()) return std::nullopt;
  return reason;
}

void bind_follow_results(nb::module_& module) {
  bind_result<FollowUpdate>(
      module, "FollowUpdate", "From one state to the next.",
      field("number", &FollowUpdate::number, "Counts the follower's updates, from 1 on."),
      field("phase", &FollowUpdate::phase, "Empty in a folder that is no run."),
      field("step", &FollowUpdate::step), field("path", &FollowUpdate::file),
      field("file_bytes", &FollowUpdate::bytes),
      field("saved_ns", &FollowUpdate::saved_ns,
            "Nanoseconds since 1970: when the file was changed last."),
      field("deltas", &FollowUpdate::deltas,
            "Deltas that were applied in order to what was held; 0: the state was read as a whole, "
            "of the file with all that it is based on."),
      field("bytes_read", &FollowUpdate::bytes_read, "All files that were needed, together."),
      field("bytes_changed", &FollowUpdate::bytes_changed,
            "In memory, of the tensors that differ; with `into`, all that were written."),
      field("changed", &FollowUpdate::changed, "REGION/NAME of tensors that differ or are new."),
      field("removed", &FollowUpdate::removed, "Those that the state does not have any more."),
      field("fell_back", &FollowUpdate::fell_back,
            "The deltas could not be applied, or the newest checkpoint not be read; `reason` says "
            "why."),
      field("reason", &FollowUpdate::reason, "None where it did not fall back.", reason_of),
      field("went_back", &FollowUpdate::went_back, "The run goes on from an earlier step."),
      field("seconds", &FollowUpdate::seconds, "For reading and verifying, then for applying."),
      field("latency", &FollowUpdate::latency,
            "Seconds from `saved_ns` until it was applied; 0 of what is prepared."));
  bind_result<FollowedTensor>(
      module, "FollowedTensor", "A tensor that a follower holds, or is about to.",
      field("region", &FollowedTensor::region), field("name", &FollowedTensor::name),
      field("role", &FollowedTensor::role),
      field(
          "dtype", [](auto& tensor) -> auto& { return tensor.layout.dtype; },
          "The format's name of its element type: \"f32\", \"bf16\", …"),
      field(
          "shape", [](auto& tensor) -> auto& { return tensor.layout.shape; }),
      field(
          "encoding", [](auto& tensor) -> auto& { return tensor.layout.encoding; },
          "\"dense\", \"csr\" or \"coo\"."),
      field("nbytes", &FollowedTensor::logical_bytes, "Bytes of memory of one's own for it."),
      hidden([](auto& tensor) -> auto& { return tensor.layout.nnz; }),
      hidden([](auto& tensor) -> auto& { return tensor.layout.wide_indices; }),
      hidden([](auto& tensor) -> auto& { return tensor.content_hash; }));
}

void bind_followed_state(nb::module_& module) {
  nb::class_<StateTensor>(module, "StateTensor")
      .def_prop_ro("name", [](const StateTensor& t) { return t.facts.name; })
      .def_prop_ro("region", [](const StateTensor& t) { return t.facts.region; })
      .def_prop_ro("role", [](const StateTensor& t) { return role_name(t.facts.role); })
      .def_prop_ro("dtype", [](const StateTensor& t) { return dtype_name(t.facts.layout.dtype); })
      .def_prop_ro("shape", [](const StateTensor& t) { return t.facts.layout.shape; })
      .def_prop_ro("encoding",
                   [](const StateTensor& t) { return encoding_name(t.facts.layout.encoding); })
      .def_prop_ro("wide_indices", [](const StateTensor& t) { return t.facts.layout.wide_indices; })
      .def_prop_ro("nbytes", [](const StateTensor& t) { return t.facts.logical_bytes; })
      .def("payload", [](const StateTensor& t) { return Payload(t.value.bytes(), t); })
      .def("sparse", sparse_arrays);
  nb::class_<PyState>(module, "FollowedState")
      .def_prop_ro("step", [](const PyState& self) { return self.state->step(); })
      .def_prop_ro("phase", [](const PyState& self) { return self.state->phase(); })
      .def_prop_ro("path", [](const PyState& self) { return self.state->file(); })
      .def_prop_ro("metadata_json", [](const PyState& self) { return self.state->metadata_json(); })
      .def_prop_ro("tensors", state_tensors);
}

void make_follower(PyFollower* self, const Path& folder, const std::string& phase, const Path& into,
                   Names include, double interval, bool polling, bool lease,
                   const MemoryCallback& memory, const std::string& access,
                   std::vector<Path> search, unsigned threads,
                   std::optional<std::uint64_t> memory_bytes, const Members& save) {
  FollowOptions options{.phase = phase,
                        .interval = *milliseconds_of(interval),
                        .polling = polling,
                        .lease = lease,
                        .include = std::move(include),
                        .into = into,
                        .output = save_options(save).output,
                        .chain = {.read = read_options(access, "on_first_touch", threads),
                                  .search = std::move(search)}};
  options.chain.read.work.memory_bytes = memory_bytes;
  new (self) PyFollower(folder, std::move(options), memory);
}

}  // namespace

void bind_follow(nb::module_& module) {
  bind_follow_results(module);
  bind_followed_state(module);
  nb::class_<PyFollower>(module, "Follower")
      .def("__init__", make_follower, nb::arg("folder"), nb::arg("phase"), nb::arg("into"),
           nb::arg("include"), nb::arg("interval"), nb::arg("polling"), nb::arg("lease"),
           nb::arg("memory").none(), nb::arg("access"), nb::arg("search"), nb::arg("threads"),
           nb::arg("memory_bytes").none(), nb::arg("save"))
      .def(
          "add_memory",
          [](PyFollower& self, const std::optional<std::string>& region, const Names& names,
             const std::optional<std::string>& dtype, const std::optional<Shape>& shape,
             nb::handle buffer) {
            const FollowerUse use(self);
            const ServerMemory memory = memory_in(*self.held, dtype, shape, buffer);
            if (!region) return use->add_memory(names, memory);
            for (const std::string& name : names) use->add_memory(*region, name, memory);
          },
          nb::arg("region").none(), nb::arg("names"), nb::arg("dtype").none(),
          nb::arg("shape").none(), nb::arg("buffer"))
      .def("wait", wait_for, nb::arg("timeout").none(), nb::arg("tell"))
      .def("prepare", prepare_for, nb::arg("timeout").none(), nb::arg("tell"))
      .def("apply", apply_now, nb::arg("before").none(), nb::arg("after").none())
      .def("current", current_state)
      .def("wake",
           [](const PyFollower& self) {
             if (const std::shared_ptr<Follower> follower = self.follower) follower->wake();
           })
      .def_prop_ro("is_open", [](const PyFollower& self) { return self.follower != nullptr; })
      .def_prop_ro("is_polling", [](const PyFollower& self) { return self.get()->is_polling(); })
      .def("take_warnings", [](const PyFollower& self) { return text_list(self.warnings->take()); })
      .def("close", &PyFollower::close);
}

}  // namespace thalia::python
