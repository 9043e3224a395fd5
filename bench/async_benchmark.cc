// Saving in the background: the time until training goes on, beside one copy of the state, of the
// first save of a saver and of those that follow; and a training loop that saves, beside the same
// loop without saves and with saves that it waits for.
#include <memory>
#include <optional>

#include "base/parallel.h"
#include "floors.h"
#include "measure/samples.h"
#include "paired.h"
#include "scratch.h"
#include "settings.h"
#include "thalia/async_save.h"

namespace thalia::bench::async_subject {
namespace {

constexpr unsigned kSteps = 12;
constexpr unsigned kStepsPerSave = 4;
constexpr unsigned kRoundsPerStep = 80;
constexpr std::size_t kStepElements = 16 << 10;  // stays in a cache for the rounds of a step

// What the saver's memory is when a save begins.
enum class Memory {
  used,      // by saves before
  reserved,  // for the first save, with time since then
  fresh,     // of the first save, about which the saver was told nothing
};

// A state in memory, a folder on a disk, and a saver.
class Training {
 public:
  Training(const Settings& settings, std::uint64_t bytes, std::uint64_t tensor_bytes)
      : weights_(measure::normal_f32(bytes)),
        tensor_bytes_(tensor_bytes),
        parent_(settings.disk),
        folder_(parent_) {
    renew_saver(Memory::reserved);
  }

  ByteSpan payload() const { return as_byte_span(weights_); }

  // Ours: what a training loop is held up by, from the first declaration on.
  void save_in_background() { saver_->save_async(writer()); }
  void save_and_wait() { writer().commit(); }
  void finish() { saver_->wait_all(); }

  void renew_saver(Memory memory) {
    saver_.reset();  // which gives its memory back first
    saver_.emplace();
    if (memory != Memory::reserved) return;
    saver_->reserve(writer());
    saver_->wait_until_reserved();
  }

  /// Every element is read and written, on all cores, with arithmetic in between.
  void step() {
    parallel_for((weights_.size() + kStepElements - 1) / kStepElements, 0, [&](std::size_t run) {
      const std::span<float> part = std::span(weights_).subspan(run * kStepElements);
      const std::size_t count = std::min(part.size(), kStepElements);
      for (unsigned round = 0; round < kRoundsPerStep; ++round) {
        for (float& weight : part.first(count)) weight = weight * 0.9999F + 1e-6F;
      }
    });
  }
  template <typename Save>
  void train(Save save) {
    for (unsigned i = 1; i <= kSteps; ++i) {
      step();
      if (i % kStepsPerSave == 0) save();
    }
    finish();
  }

  /// No save is left from before, no file, and nothing for the disk to do; memory for the page
  /// cache is there.
  void clear() {
    finish();
    std::filesystem::remove(folder_ / "a.thalia");
    ready_to_write(parent_, payload().size());
  }

 private:
  Writer writer() const {
    Writer writer(folder_ / "a.thalia");
    measure::add_tensors(writer, payload(), DType::f32, tensor_bytes_);
    return writer;
  }

  std::vector<float> weights_;
  std::uint64_t tensor_bytes_;
  std::filesystem::path parent_;
  ScratchFolder folder_;
  std::optional<AsyncSaver> saver_;
};

void add_stall(PairedSuite& suite, const Settings& settings, const std::string& what,
               std::uint64_t bytes, std::uint64_t tensor_bytes, Memory memory) {
  const auto add = [&](const char* floor, unsigned threads) {
    suite.add("until training goes on, " + what + ", beside " + floor, [=] {
      const auto training = std::make_shared<Training>(settings, bytes, tensor_bytes);
      const auto target = std::make_shared<std::vector<std::byte>>(bytes);
      return Comparison{
          .ours = {"durable save in background", [=] { training->save_in_background(); }},
          .floor = {floor,
                    [=] {
                      threads == 1 ? copy(training->payload(), *target)
                                   : measure::copy_all(training->payload(), *target, threads);
                    }},
          .bytes = bytes,
          .prepare = [=] {
            training->clear();
            if (memory != Memory::used) training->renew_saver(memory);
          }};
    });
  };
  add("memcpy, one core", 1);
  if (memory == Memory::used) add("memcpy, all cores", 0);
}

void add_loop(PairedSuite& suite, const Settings& settings, const std::string& what,
              std::uint64_t bytes) {
  const auto add = [&](const std::string& floor, auto save) {
    suite.add("training, " + std::to_string(kSteps) + " steps, " + what + ", beside " + floor, [=] {
      const auto training = std::make_shared<Training>(settings, bytes, measure::kTensorBytes);
      return Comparison{.ours = {std::to_string(kSteps / kStepsPerSave) + " saves in background",
                                 [=] { training->train([&] { training->save_in_background(); }); }},
                        .floor = {floor, [=] { training->train([&] { save(*training); }); }},
                        .prepare = [=] { training->clear(); }};
    });
  };
  add("saves that it waits for", [](Training& training) { training.save_and_wait(); });
  add("no saves", [](Training&) {});
}

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  const std::uint64_t bytes = settings.bytes();
  const std::string size = settings.smoke ? "smoke" : std::to_string(settings.mib) + " MiB of f32";
  add_stall(suite, settings, size, bytes, measure::kTensorBytes, Memory::used);
  add_stall(suite, settings, size + ", first save, reserved", bytes, measure::kTensorBytes,
            Memory::reserved);
  add_stall(suite, settings, size + ", first save, not reserved", bytes, measure::kTensorBytes,
            Memory::fresh);
  const std::uint64_t count = settings.at_most(100'000, 100);
  add_stall(suite, settings, std::to_string(count) + " tensors of 4 KiB", count * 4096, 4096,
            Memory::used);
  add_loop(suite, settings, size, bytes);
  return false;
}

}  // namespace thalia::bench::async_subject
