// States of a run for those who follow it, from C.
#include <optional>
#include <stop_token>

#include "base/fail.h"
#include "c/arguments.h"
#include "c/choice.h"
#include "c/guard.h"
#include "c/handles.h"
#include "c/saving_run.h"
#include "c/sized.h"
#include "thalia/store/publish.h"

using namespace thalia;
using namespace thalia::c;

struct thalia_publisher {
  Publisher publisher;
};

namespace {

void give_optional(thalia_published* out, const PublishedState& published) {
  if (out == nullptr) return;
  thalia_published info{};
  info.step = published.entry.step;
  info.file_bytes = published.entry.bytes;
  info.depth = published.entry.depth;
  info.tensors = published.tensors;
  info.changed = published.changed;
  info.from_memory = published.from_memory ? 1 : 0;
  info.is_best = published.is_best ? 1 : 0;
  info.removed = static_cast<std::uint32_t>(published.removed.size());
  info.visible_seconds = published.visible_seconds;
  info.seconds = published.seconds;
  info.sync_seconds = published.sync_seconds;
  give(*out, info, "result");
}

}  // namespace

thalia_status thalia_publisher_open(thalia_run_writer* run, const char* phase,
                                    const thalia_publisher_options* options,
                                    thalia_publisher** publisher) {
  return guarded([&] {
    thalia_publisher*& place = emptied(publisher, "publisher");
    const thalia_publisher_options from = taken(options, "options");
    PublisherOptions own{.hold = !flag(from.hold_nothing, "hold_nothing")};
    if (phase != nullptr) own.phase = phase;
    place = new thalia_publisher{Publisher(saving(run), std::move(own))};
  });
}

void thalia_publisher_close(thalia_publisher* publisher) {
  delete publisher;
}

thalia_status thalia_publisher_newest(const thalia_publisher* publisher, uint64_t* step) {
  return guarded([&] {
    const Publisher& of = required(publisher, "publisher").publisher;
    uint64_t& place = required(step, "step");
    const std::optional<std::uint64_t> newest = of.newest();
    if (!newest)
      throw UsageError(ErrorCode::not_found, "nothing was published yet",
                       {.path = of.run().folder().string(), .field = "phase"});
    place = *newest;
  });
}

thalia_status thalia_publisher_begin(thalia_publisher* publisher, uint64_t step,
                                     const thalia_save_options* options, thalia_writer** writer) {
  return guarded([&] {
    thalia_writer*& place = emptied(writer, "writer");
    const std::stop_source stop;
    Publisher& to = required(publisher, "publisher").publisher;
    place =
        new thalia_writer{stop, to.new_checkpoint(step, save_options(options, stop.get_token()))};
  });
}

thalia_status thalia_publisher_publish(thalia_publisher* publisher, thalia_writer* writer,
                                       const thalia_checkpoint_options* options,
                                       thalia_published* result) {
  return guarded([&] {
    Publisher& to = required(publisher, "publisher").publisher;
    const Writer& declared = writing(writer);
    check_optional(result, "result");
    const thalia_checkpoint_options from = taken(options, "options");
    PublishOptions own;
    if (flag(from.has_metric, "has_metric")) own.metric = from.metric;
    if (flag(from.replace, "replace"))
      fail_argument(ErrorCode::bad_argument, "options.replace", "1", "0: steps increase");
    give_optional(result, to.publish(declared, own));
  });
}
