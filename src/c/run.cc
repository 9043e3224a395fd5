// Runs: what is read of them, and saves into them. A checkpoint that C is handed is a full file; of
// deltas it has no readers.
#include "thalia/c/run.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "c/arguments.h"
#include "c/choice.h"
#include "c/guard.h"
#include "c/handles.h"
#include "c/saving_run.h"
#include "c/sized.h"
#include "thalia/store/run.h"
#include "thalia/store/writer.h"

using namespace thalia;
using namespace thalia::c;

struct thalia_run {
  Run run;
};

namespace {

constexpr std::array kChecks{LoadCheck::digest, LoadCheck::on_touch};
constexpr std::array kConditions{Condition::unknown, Condition::whole, Condition::damaged};

const Run& opened(const thalia_run* run) {
  return required(run, "run").run;
}

std::function<void(const std::string&)> warning_of(thalia_run_warning warning, void* context) {
  if (warning == nullptr) return {};
  return [=](const std::string& sentence) { warning(context, sentence.c_str()); };
}

struct Loading {
  LoadOptions options{};
  std::optional<std::string> gate{};
};

Loading loading(const thalia_load_options* given) {
  const thalia_load_options from = taken(given, "options");
  Loading loading;
  if (flag(from.only_step, "only_step")) loading.options.step = from.step;
  loading.options.check = chosen(kChecks, from.check, "check");
  loading.options.on_warning = warning_of(from.warning, from.context);
  if (from.gate != nullptr) loading.gate = from.gate;
  return loading;
}

SaveInfo save_info(const thalia_checkpoint_options* given) {
  const thalia_checkpoint_options from = taken(given, "options");
  SaveInfo info{.replace = flag(from.replace, "replace")};
  if (flag(from.has_metric, "has_metric")) info.metric = from.metric;
  return info;
}

thalia_checkpoint_info info_of(const CheckpointEntry& entry) {
  thalia_checkpoint_info info{};
  info.step = entry.step;
  info.file_bytes = entry.bytes;
  info.saved_at = entry.saved_at;
  info.metric = entry.metric.value_or(0);
  info.has_metric = entry.metric ? 1 : 0;
  info.condition = number_of(kConditions, entry.condition);
  info.depth = entry.depth;
  info.left_behind = entry.left_behind ? 1 : 0;
  return info;
}

void give_optional(thalia_checkpoint_info* out, const CheckpointEntry& entry) {
  if (out != nullptr) give(*out, info_of(entry), "info");
}

void give_optional(thalia_stored* out, const StoredCheckpoint& stored) {
  if (out == nullptr) return;
  thalia_stored info{};
  info.file_bytes = stored.entry.bytes;
  info.is_best = stored.is_best ? 1 : 0;
  info.removed = static_cast<std::uint32_t>(stored.removed.size());
  info.seconds = stored.seconds;
  info.sync_seconds = stored.sync_seconds;
  give(*out, info, "result");
}

void give_found(thalia_checkpoint_info* out, const std::optional<CheckpointEntry>& found,
                const Run& run, const char* phase, const char* what) {
  thalia_checkpoint_info& place = required(out, "info");
  checked_size(place, "info");
  if (!found) {
    throw UsageError(ErrorCode::not_found, fmt::format("{} has no {} checkpoint", phase, what),
                     {.path = run.folder().string(), .field = "phase"});
  }
  give(place, info_of(*found), "info");
}

// load() into a reader.
template <typename Load>
void load_into(thalia_reader** reader, thalia_checkpoint_info* info, Load load) {
  thalia_reader*& place = emptied(reader, "reader");
  check_optional(info, "info");
  const LoadedCheckpoint loaded = load();
  if (loaded.chain.depth() != 0) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "a delta, which thalia_run_restore() makes a file of",
                           {.path = loaded.path.string()});
  }
  place = new thalia_reader{loaded.chain.reader()};
  give_optional(info, loaded.entry);
}

}  // namespace

thalia_status thalia_run_create(const char* folder, const char* config_json) {
  return guarded([&] {
    const std::string_view place = required_text(folder, "folder");
    create_run(place,
               parse_run_config(required_text(config_json, "config_json"), ConfigFormat::json),
               ConfigFormat::json);
  });
}

thalia_status thalia_run_open(const char* folder, thalia_run** run) {
  return guarded([&] {
    thalia_run*& place = emptied(run, "run");
    place = new thalia_run{Run::open(required_text(folder, "folder"))};
  });
}

void thalia_run_close(thalia_run* run) {
  delete run;
}

thalia_status thalia_run_checkpoint(const thalia_run* run, const char* phase, uint64_t index,
                                    thalia_checkpoint_info* info) {
  return guarded([&] {
    const Run& of = opened(run);
    const std::vector<CheckpointEntry> all = of.list(required_text(phase, "phase"));
    std::optional<CheckpointEntry> found;
    if (index < all.size()) found = all[index];
    give_found(info, found, of, phase, "such");
  });
}

thalia_status thalia_run_latest(const thalia_run* run, const char* phase,
                                thalia_checkpoint_info* info) {
  return guarded([&] {
    const Run& of = opened(run);
    give_found(info, of.latest(required_text(phase, "phase")), of, phase, "latest");
  });
}

thalia_status thalia_run_best(const thalia_run* run, const char* phase,
                              thalia_checkpoint_info* info) {
  return guarded([&] {
    const Run& of = opened(run);
    give_found(info, of.best(required_text(phase, "phase")), of, phase, "best");
  });
}

thalia_status thalia_run_path(const thalia_run* run, const char* phase, uint64_t step, char* path,
                              size_t capacity, size_t* length) {
  return guarded([&] {
    const Run& of = opened(run);
    const std::string_view name = required_text(phase, "phase");
    const std::string found = (of.phase_folder(name) / of.file_name(name, step)).string();
    if (length != nullptr) *length = found.size();
    const MutableByteSpan out = memory_at(static_cast<void*>(path), capacity, "path");
    if (out.size() <= found.size()) {
      fail_argument(ErrorCode::size_mismatch, "capacity", std::to_string(out.size()),
                    fmt::format("{} bytes or more", found.size() + 1));
    }
    std::ranges::copy(found, path);
    path[found.size()] = '\0';
  });
}

thalia_status thalia_run_load(const thalia_run* run, const char* phase,
                              const thalia_load_options* options, thalia_reader** reader,
                              thalia_checkpoint_info* info) {
  return guarded([&] {
    load_into(reader, info, [&] {
      const Run& of = opened(run);
      const Loading how = loading(options);
      return how.gate ? of.load_gate(*how.gate, how.options)
                      : of.load(required_text(phase, "phase"), how.options);
    });
  });
}

thalia_status thalia_run_restore(const thalia_run* run, const char* phase, const char* target,
                                 uint32_t replace, const thalia_load_options* options,
                                 thalia_checkpoint_info* info) {
  return guarded([&] {
    const Run& of = opened(run);
    check_optional(info, "info");
    Loading how = loading(options);
    RestoreOptions own{.load = std::move(how.options), .gate = std::move(how.gate)};
    own.output.replace = flag(replace, "replace");
    own.output.link = OutputLink::followed;
    const std::string_view from = own.gate ? std::string_view() : required_text(phase, "phase");
    give_optional(info, restore(of, from, required_text(target, "target"), own).entry);
  });
}

thalia_status thalia_run_writer_open(const char* folder, const thalia_run_writer_options* options,
                                     thalia_run_writer** run) {
  return guarded([&] {
    thalia_run_writer*& place = emptied(run, "run");
    const thalia_run_writer_options from = taken(options, "options");
    RunWriterOptions own{.wait = flag(from.wait, "wait"),
                         .durability = chosen(kDurabilities, from.durability, "durability")};
    own.on_warning = warning_of(from.warning, from.context);
    place = new thalia_run_writer{RunWriter(required_text(folder, "folder"), std::move(own))};
  });
}

void thalia_run_writer_close(thalia_run_writer* run) {
  delete run;
}

thalia_status thalia_run_writer_begin(thalia_run_writer* run, const char* phase, uint64_t step,
                                      uint32_t replace, const thalia_save_options* options,
                                      thalia_writer** writer) {
  return guarded([&] {
    thalia_writer*& place = emptied(writer, "writer");
    const std::stop_source stop;
    place =
        new thalia_writer{stop, saving(run).new_checkpoint(required_text(phase, "phase"), step,
                                                           save_options(options, stop.get_token()),
                                                           flag(replace, "replace"))};
  });
}

thalia_status thalia_run_writer_commit(thalia_run_writer* run, thalia_writer* writer,
                                       const thalia_checkpoint_options* options,
                                       thalia_stored* result) {
  return guarded([&] {
    RunWriter& to = saving(run);
    Writer& declared = writing(writer);
    check_optional(result, "result");
    give_optional(result, to.commit(std::move(declared), save_info(options)));
  });
}

thalia_status thalia_run_writer_save_bytes(thalia_run_writer* run, const char* phase, uint64_t step,
                                           const void* data, size_t bytes,
                                           const thalia_checkpoint_options* options,
                                           thalia_stored* result) {
  return guarded([&] {
    check_optional(result, "result");
    give_optional(result,
                  saving(run).save_bytes(required_text(phase, "phase"), step,
                                         memory_at(data, bytes, "data"), save_info(options)));
  });
}

thalia_status thalia_run_writer_save_file(thalia_run_writer* run, const char* phase, uint64_t step,
                                          const char* file,
                                          const thalia_checkpoint_options* options,
                                          thalia_stored* result) {
  return guarded([&] {
    check_optional(result, "result");
    give_optional(result, saving(run).save_file(required_text(phase, "phase"), step,
                                                required_text(file, "file"), save_info(options)));
  });
}

thalia_status thalia_run_writer_resume(thalia_run_writer* run, const char* phase,
                                       const thalia_load_options* options, thalia_reader** reader,
                                       thalia_checkpoint_info* info) {
  return guarded([&] {
    load_into(reader, info, [&] {
      RunWriter& to = saving(run);
      const Loading how = loading(options);
      if (how.gate) {
        fail_argument(ErrorCode::bad_argument, "gate", "'" + *how.gate + "'",
                      "NULL: a run goes on from a checkpoint of a phase");
      }
      return to.resume(required_text(phase, "phase"), how.options);
    });
  });
}
