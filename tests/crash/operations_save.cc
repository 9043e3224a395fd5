// Saves: a whole new file in the place of an old one.
#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>
#include <vector>

#include "crash/content.h"
#include "crash/operation.h"
#include "support/files.h"
#include "thalia/async_save.h"
#include "thalia/compress.h"
#include "thalia/files.h"
#include "thalia/storage.h"
#include "thalia/writer.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace saves {
namespace {

constexpr const char* kFile = "run.thalia";

// Equal input gives equal bytes, which makes the states of two runs the same.
SaveOptions durable() {
  SaveOptions options = test::steady_options();
  options.output.durability = Durability::full;
  options.work.threads = 2;
  return options;
}

SaveOptions durable_as(Durability durability) {
  SaveOptions options = durable();
  options.output.durability = durability;
  return options;
}

void prepare_nothing(const fs::path&) {}

void prepare_old_file(const fs::path& folder) {
  test::save(folder / kFile, network(1));
}

std::string observe(const fs::path& folder) {
  return content_of(folder / kFile);
}

void save_again(const fs::path& folder) {
  test::save(folder / kFile, test::small_sample(), durable());
  static const std::string saved = [] {
    const test::TemporaryFolder other;
    test::save(other / kFile, test::small_sample());
    return content_of(other / kFile);
  }();
  if (content_of(folder / kFile) != saved) throw std::logic_error("the next save was lost");
}

// Two saves, so that one of them replaces a file that a save has left.
template <typename Save>
void save_twice(Teller& teller, Durability durability, const Save& save) {
  for (const unsigned step : {2u, 3u}) {
    const std::string name = std::to_string(step);
    teller.attempt(name);
    save(step);
    durability == Durability::full ? teller.promise(name) : teller.finish(name);
  }
}

template <Durability kDurability>
void run_raw(const fs::path& folder, Teller& teller) {
  save_twice(teller, kDurability, [&](unsigned step) {
    test::save(folder / kFile, network(step), durable_as(kDurability));
  });
}

void run_direct(const fs::path& folder, Teller& teller) {
  save_twice(teller, Durability::full, [&](unsigned step) {
    SaveOptions options = durable();
    options.io = IoMode::direct;
    options.queue_depth = 4;
    test::save(folder / kFile, large_network(step), options);
  });
}

void run_compressed(const fs::path& folder, Teller& teller) {
  save_twice(teller, Durability::full, [&](unsigned step) {
    SaveOptions options = durable();
    options.compression.codec = Codec::zstd;
    options.compression.chunk_bytes = 4096;
    test::save(folder / kFile, network(step), options);
  });
}

void run_streamed(const fs::path& folder, Teller& teller) {
  save_twice(teller, Durability::full, [&](unsigned step) {
    Writer writer(folder / kFile, durable());
    const test::Sample sample = network(step);
    std::vector<std::pair<TensorId, ByteSpan>> payloads;
    for (const test::SampleRegion& region : sample.regions) {
      const RegionId id = writer.add_region(region.spec);
      for (const test::SampleTensor& tensor : region.tensors)
        payloads.emplace_back(writer.add_tensor(id, tensor.spec), tensor.payload);
    }
    for (const auto& [id, payload] : payloads)
      for (std::size_t at = 0; at < payload.size(); at += 5000)
        writer.write(id, payload.subspan(at, std::min<std::size_t>(5000, payload.size() - at)));
    writer.commit();
  });
}

void run_without_replacing(const fs::path& folder, Teller& teller) {
  teller.attempt("2");
  SaveOptions options = durable();
  options.output.replace = false;
  test::save(folder / kFile, network(2), options);
  teller.promise("2");
}

// Each is promised by the thread that has written it, before it begins with the next.
void run_async(const fs::path& folder, Teller& teller) {
  const test::Sample samples[] = {network(2), network(3)};
  std::atomic<unsigned> done = 0;
  AsyncSaveOptions options{.when_busy = WhenBusy::queue};
  options.on_done = [&](const SaveHandle<>& save) {
    const test::Sample& sample = samples[done++];
    if (save.error() == nullptr) teller.promise(std::to_string(sample.training_steps));
  };
  AsyncSaver saver(options);
  std::vector<SaveHandle<>> saves;
  for (const test::Sample& sample : samples) {
    teller.attempt(std::to_string(sample.training_steps));
    Writer writer(folder / kFile, durable());
    test::declare(writer, sample);
    saves.push_back(saver.save_async(std::move(writer)));
  }
  for (const SaveHandle<>& save : saves) save.wait();
  saver.wait_all();
}

void prepare_sources(const fs::path& folder) {
  for (const unsigned step : {2u, 3u}) test::save(folder / std::to_string(step), network(step));
}

void run_wrapped(const fs::path& folder, Teller& teller) {
  save_twice(teller, Durability::full, [&](unsigned step) {
    compress_checkpoint(folder / std::to_string(step), folder / "run.thalia.zst",
                        {.frame_bytes = 4096, .work = {.threads = 2}});
  });
}

std::string observe_wrapped(const fs::path& folder) {
  if (!is_file(folder / "run.thalia.zst")) return kAbsent;
  const test::TemporaryFolder other;
  decompress_checkpoint(folder / "run.thalia.zst", other / kFile, {.work = {.threads = 1}});
  return content_of(other / kFile);
}

std::string observe_output(const fs::path& folder) {
  return is_file(folder / "report.txt") ? test::read_file(folder / "report.txt") : kAbsent;
}

void write_output(const fs::path& folder, const std::string& text) {
  OutputFile out(folder / "report.txt");
  out.write(test::bytes_of(text));
  out.overwrite(0, test::bytes_of("<"));
  out.commit();
}

void prepare_output(const fs::path& folder) {
  write_output(folder, " old" + std::string(9000, 'o'));
}

void run_output(const fs::path& folder, Teller& teller) {
  save_twice(teller, Durability::full, [&](unsigned step) {
    write_output(folder, std::to_string(step) + std::string(6000, 'n'));
  });
}

void output_again(const fs::path& folder) {
  write_output(folder, " again");
  if (observe_output(folder) != "<again") throw std::logic_error("the next file was lost");
}

// An object below folders that its put has to make.
void run_put(const fs::path& folder, Teller& teller) {
  LocalStorage storage(folder / "store");
  const auto put = [&](const char* name, const char* key, const std::string& text) {
    teller.attempt(name);
    storage.put(key, test::bytes_of(text));
    teller.promise(name);
  };
  put("a", "runs/a/state", std::string(5000, 'a'));
  put("b", "runs/a/state", std::string(7000, 'b'));
  put("c", "runs/b", "c");
  teller.attempt("d");
  storage.erase("runs/b");
  teller.promise("d");
}

void run_put_in_unsynced_folders(const fs::path& folder, Teller& teller) {
  make_unsynced_folders(folder, {"store", "store/runs", "store/runs/a"});
  LocalStorage storage(folder / "store");
  teller.attempt("a");
  storage.put("runs/a/state", test::bytes_of("a"));
  teller.promise("a");
}

std::string observe_storage(const fs::path& folder) {
  if (!fs::exists(folder / "store")) return "";
  const LocalStorage storage(folder / "store");
  std::string all;
  for (const std::string& key : storage.list())
    all += key + "=" + test::text_of(storage.get(key)) + ";";
  return all;
}

void put_again(const fs::path& folder) {
  LocalStorage storage(folder / "store");
  storage.put("runs/a/state", test::bytes_of("again"));
  if (test::text_of(storage.get("runs/a/state")) != "again")
    throw std::logic_error("the next put was lost");
}

constexpr Operation kOperations[] = {
    {"first save", prepare_nothing, run_raw<Durability::full>, observe, save_again},
    {"raw save", prepare_old_file, run_raw<Durability::full>, observe, save_again},
    {"raw save, data", prepare_old_file, run_raw<Durability::data>, observe, save_again},
    {"raw save, none", prepare_old_file, run_raw<Durability::none>, observe, save_again, true},
    {"direct save", prepare_old_file, run_direct, observe, save_again},
    {"compressed save", prepare_old_file, run_compressed, observe, save_again},
    {"streamed save", prepare_old_file, run_streamed, observe, save_again},
    {"raw save, named", prepare_old_file, run_named<run_raw<Durability::full>>, observe,
     save_again},
    {"direct save, named", prepare_old_file, run_named<run_direct>, observe, save_again},
    {"compressed save, named", prepare_old_file, run_named<run_compressed>, observe, save_again},
    {"streamed save, named", prepare_old_file, run_named<run_streamed>, observe, save_again},
    {"asynchronous saves, named", prepare_old_file, run_named<run_async>, observe, save_again},
    {"new file only", prepare_nothing, run_without_replacing, observe, save_again},
    {"asynchronous saves", prepare_old_file, run_async, observe, save_again},
    {"wrapped save", prepare_sources, run_wrapped, observe_wrapped, save_again},
    {"wrapped save, named", prepare_sources, run_named<run_wrapped>, observe_wrapped, save_again},
    {"output file", prepare_output, run_output, observe_output, output_again},
    {"storage", prepare_nothing, run_put, observe_storage, put_again},
    {"storage, folders of others", prepare_nothing, run_put_in_unsynced_folders, observe_storage,
     put_again},
};

}  // namespace
}  // namespace saves

std::span<const Operation> save_operations() {
  return saves::kOperations;
}

}  // namespace thalia::crash
