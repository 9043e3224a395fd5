// Opening a file and finding one tensor of ten to a million: flat is the aim. Beside it the
// safetensors file of the same tensors, whose header has to be read whole.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "floors.h"
#include "paired.h"
#include "scratch.h"
#include "settings.h"
#include "thalia/formats/safetensors.h"
#include "thalia/reader.h"

namespace thalia::bench::open_subject {
namespace {

constexpr std::uint64_t kTensorElements = 16;
constexpr std::uint64_t kTensorsOfRegion = 8;

struct Names {
  std::string region, tensor;
};

// The same tensors three times: in one region, in a region for each eight, and as safetensors.
class Files {
 public:
  Files(const Settings& settings, std::uint64_t count)
      : folder_(settings.disk), payload_(kTensorElements) {
    const ByteSpan payload = as_byte_span(payload_);
    std::vector<NamedArray> tensors;
    Writer one(flat(), {.output = {.durability = Durability::none}});
    Writer many(grouped(), {.output = {.durability = Durability::none}});
    const RegionId model = one.add_region({.name = "model"});
    RegionId group{};
    for (std::uint64_t i = 0; i < count; ++i) {
      const TensorSpec spec{.name = measure::tensor_name(i), .shape = {kTensorElements}};
      if (i % kTensorsOfRegion == 0) group = many.add_region({.name = region_name(i)});
      one.add_tensor(model, spec, payload);
      many.add_tensor(group, spec, payload);
      tensors.push_back({.name = spec.name, .shape = spec.shape, .bytes = payload});
    }
    one.commit();
    many.commit();
    save_safetensors(safetensors(), std::move(tensors), std::nullopt,
                     {.durability = Durability::none});
    measure::settle(settings.disk);
    // All over the file, in an order that no cache foresees.
    for (std::uint64_t i = 0; i < wanted_.size(); ++i) {
      const std::uint64_t tensor = (i * 2654435761u + 1) % count;
      wanted_[i] = {region_name(tensor), measure::tensor_name(tensor)};
    }
  }

  std::filesystem::path flat() const { return folder_ / "flat.thalia"; }
  std::filesystem::path grouped() const { return folder_ / "grouped.thalia"; }
  std::filesystem::path safetensors() const { return folder_ / "same.safetensors"; }
  const Names& next_wanted() { return wanted_[next_++ % wanted_.size()]; }

 private:
  static std::string region_name(std::uint64_t tensor) {
    return "layers." + std::to_string(tensor / kTensorsOfRegion);
  }

  ScratchFolder folder_;
  std::vector<float> payload_;
  std::array<Names, 64> wanted_;
  std::size_t next_ = 0;
};

ReadOptions options_for(Verification verification) {
  return {.verification = verification};
}

void open_only(Files& files, Verification verification) {
  benchmark::DoNotOptimize(Reader::open(files.flat(), options_for(verification)).tensor_count());
}

void open_and_find(Files& files, Verification verification) {
  const Reader reader = Reader::open(files.flat(), options_for(verification));
  touch_pages(reader.region("model").at(files.next_wanted().tensor).bytes());
}

void open_and_find_grouped(Files& files, Verification verification) {
  const Reader reader = Reader::open(files.grouped(), options_for(verification));
  const Names& wanted = files.next_wanted();
  touch_pages(reader.region(wanted.region).at(wanted.tensor).bytes());
}

void open_and_find_safetensors(Files& files) {
  const SafetensorsFile file = SafetensorsFile::open(files.safetensors());
  const auto found = std::find_if(file.tensors().begin(), file.tensors().end(),
                                  [&name = files.next_wanted().tensor](const NamedArray& tensor) {
                                    return tensor.name == name;
                                  });
  touch_pages(found->bytes);
}

using Step = void (*)(Files&, Verification);

void measure_alone(const std::string& name, Step step, Verification verification,
                   std::shared_ptr<Files> files) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 for (auto _ : state) step(*files, verification);
                               })
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  std::shared_ptr<Files> ten;
  for (const std::uint64_t count : {10u, 1'000u, 10'000u, 100'000u, 1'000'000u}) {
    if (settings.smoke && count > 1'000) break;
    const auto files = std::make_shared<Files>(settings, count);
    if (!ten) ten = files;
    const std::string of = "/" + std::to_string(count);
    measure_alone("open" + of, open_only, Verification::off, files);
    for (const Verification verification : {Verification::off, Verification::on_first_touch}) {
      const std::string word = verification == Verification::off ? "unverified" : "verified";
      const auto tail = "/" + word + of;
      measure_alone("open and find" + tail, open_and_find, verification, files);
      measure_alone("open and find among regions of 8" + tail, open_and_find_grouped, verification,
                    files);
      suite.add("open and find one of " + std::to_string(count) + ", " + word, [=] {
        return Comparison{
            .ours = {"Reader, open, at, touch", [=] { open_and_find(*files, verification); }},
            .floor = {"SafetensorsFile, open, search, touch",
                      [=] { open_and_find_safetensors(*files); }}};
      });
      if (files == ten) continue;
      suite.add("flat: one of " + std::to_string(count) + " beside one of 10, " + word, [=] {
        return Comparison{
            .ours = {"of " + std::to_string(count), [=] { open_and_find(*files, verification); }},
            .floor = {"of 10", [=] { open_and_find(*ten, verification); }}};
      });
    }
  }
  return true;
}

}  // namespace thalia::bench::open_subject
