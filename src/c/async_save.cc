// Saves in the background: the saver takes over what a writer holds, and leaves the handle of the
// writer to its owner.
#include "thalia/c/writer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/fail.h"
#include "c/arguments.h"
#include "c/choice.h"
#include "c/guard.h"
#include "c/handles.h"
#include "c/sized.h"
#include "thalia/async_save.h"

using namespace thalia;
using namespace thalia::c;

struct thalia_saver {
  AsyncSaver saver;
};

struct thalia_save {
  SaveHandle<> handle;
};

namespace {

constexpr std::array kWhenBusy{WhenBusy::wait, WhenBusy::queue, WhenBusy::replace, WhenBusy::skip};
constexpr std::array kSnapshots{Snapshot::copy, Snapshot::borrowed};

AsyncSaveOptions saver_options(const thalia_saver_options* given) {
  const thalia_saver_options from = taken(given, "options");
  check_option("reserved", from.reserved, 0, 0);
  check_option("niceness", from.niceness, -1, 19);
  AsyncSaveOptions options;
  options.when_busy = chosen(kWhenBusy, from.when_busy, "when_busy");
  set_unless_zero(options.max_unfinished, from.max_unfinished);
  options.max_snapshot_bytes = from.max_snapshot_bytes;
  options.snapshot_threads = from.snapshot_threads;
  options.background_threads = from.background_threads;
  if (from.niceness != 0) options.niceness = std::max(from.niceness, 0);
  return options;
}

const SaveHandle<>& begun(const thalia_save* save) {
  return required(save, "save").handle;
}

}  // namespace

thalia_status thalia_saver_open(const thalia_saver_options* options, thalia_saver** saver) {
  return guarded([&] {
    thalia_saver*& place = emptied(saver, "saver");
    place = new thalia_saver{AsyncSaver(saver_options(options))};
  });
}

thalia_status thalia_saver_reserve(thalia_saver* saver, uint64_t bytes, uint32_t snapshots) {
  return guarded([&] { required(saver, "saver").saver.reserve(bytes, snapshots); });
}

thalia_status thalia_saver_save(thalia_saver* saver, thalia_writer* writer, uint32_t snapshot,
                                thalia_save** save) {
  return guarded([&] {
    thalia_save*& place = emptied(save, "save");
    AsyncSaver& queue = required(saver, "saver").saver;
    const Snapshot kind = chosen(kSnapshots, snapshot, "snapshot");
    // The handle's memory comes first: a save that was begun is not lost.
    place = new thalia_save{queue.save_async(std::move(writing(writer)), kind)};
  });
}

thalia_status thalia_saver_wait_all(thalia_saver* saver) {
  return guarded([&] { required(saver, "saver").saver.wait_all(); });
}

void thalia_saver_close(thalia_saver* saver) {
  delete saver;
}

thalia_status thalia_save_poll(const thalia_save* save, thalia_save_progress* progress) {
  return guarded([&] {
    const SaveHandle<>& handle = begun(save);
    thalia_save_progress info{};
    info.ended = handle.done() ? 1 : 0;  // first: the progress of an ended save is its last
    info.skipped = handle.skipped() ? 1 : 0;
    const SaveProgress reached = handle.progress();
    info.done = reached.done;
    info.total = reached.total;
    give(required(progress, "progress"), info, "progress");
  });
}

thalia_status thalia_save_wait(const thalia_save* save, thalia_save_result* result) {
  return guarded([&] {
    check_result(result);
    give_result(result, begun(save).wait());
  });
}

thalia_status thalia_save_wait_for(const thalia_save* save, uint64_t nanoseconds, uint32_t* ended) {
  return guarded([&] {
    const auto most = static_cast<std::int64_t>(std::min<std::uint64_t>(nanoseconds, INT64_MAX));
    std::uint32_t& place = required(ended, "ended");
    place = begun(save).wait_for(std::chrono::nanoseconds(most)) ? 1 : 0;
  });
}

thalia_status thalia_save_cancel(const thalia_save* save) {
  return guarded([&] { begun(save).cancel(); });
}

void thalia_save_close(thalia_save* save) {
  delete save;
}
