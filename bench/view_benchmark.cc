// What a view costs once the file is open: a look-up, typed access, a slice of rows, beside a
// pointer into a raw mapping of the same file. Typed access and rows allocate nothing, which is
// checked here.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>

#include "floors.h"
#include "measure/samples.h"
#include "paired.h"
#include "scratch.h"
#include "settings.h"
#include "thalia/reader.h"

namespace {
// The global operator new is replaced below to count allocations of the whole program.
std::atomic<std::uint64_t> allocations{0};
}  // namespace

// Inlined into a caller, one half of a pair is warned of: gcc does not see that the other is
// replaced too.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size);
}
void* operator new(std::size_t size) {
  if (void* const memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace thalia::bench::view_subject {
namespace {

constexpr std::uint64_t kColumns = 1024;

class File {
 public:
  File(const Settings& settings, Verification verification) : folder_(settings.disk) {
    const std::uint64_t rows = settings.at_most(4096, 64);
    const auto large = measure::normal_f32(rows * kColumns * sizeof(float));
    const std::vector<float> small(16);
    Writer writer(path(), {.output = {.durability = Durability::none}});
    const RegionId region = writer.add_region({.name = "model"});
    writer.add_tensor(region, {.name = "large", .shape = {rows, kColumns}}, as_byte_span(large));
    for (std::uint64_t i = 0; i < settings.at_most(1'000, 100); ++i)
      writer.add_tensor(region, {.name = measure::tensor_name(i), .shape = {16}},
                        as_byte_span(small));
    writer.commit();
    measure::settle(settings.disk);
    reader.emplace(Reader::open(path(), {.verification = verification}));
    tensor.emplace(reader->region("model").at("large"));
    touch_pages(tensor->bytes());
    raw.emplace(path());
    touch_pages(raw->bytes());
  }

  const float* raw_large() const {
    return reinterpret_cast<const float*>(raw->bytes().data() + tensor->stored_offset());
  }

  std::optional<Reader> reader;
  std::optional<TensorView> tensor;
  std::optional<RawMapping> raw;

 private:
  std::filesystem::path path() const { return folder_ / "view.thalia"; }
  ScratchFolder folder_;
};

using Step = void (*)(const File&, std::uint64_t);

void read_raw(const File& file, std::uint64_t i) {
  benchmark::DoNotOptimize(file.raw_large()[i % kColumns]);
}
void read_typed(const File& file, std::uint64_t i) {
  benchmark::DoNotOptimize(file.tensor->as<float>()[i % kColumns]);
}
void read_row(const File& file, std::uint64_t i) {
  const std::uint64_t row = i % file.tensor->shape()[0];
  benchmark::DoNotOptimize(file.tensor->rows(row, row + 1).front());
}
void find_tensor(const File& file, std::uint64_t i) {
  const char* const names[] = {"layers.3.w1", "layers.7.w7", "layers.11.w0", "large"};
  benchmark::DoNotOptimize(file.reader->region("model").at(names[i % 4]).stored_offset());
}

std::uint64_t allocations_of(Step step, const File& file) {
  const std::uint64_t before = allocations.load();
  for (std::uint64_t i = 0; i < 1000; ++i) step(file, i);
  return allocations.load() - before;
}

void measure_alone(const std::string& name, Step step, std::shared_ptr<File> file) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    const std::uint64_t before = allocations.load();
    std::uint64_t i = 0;
    for (auto _ : state) step(*file, i++);
    state.counters["allocations"] = benchmark::Counter(
        static_cast<double>(allocations.load() - before), benchmark::Counter::kAvgIterations);
  });
}

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  for (const Verification verification : {Verification::off, Verification::on_first_touch}) {
    const std::string word = verification == Verification::off ? "unverified" : "verified";
    const auto file = std::make_shared<File>(settings, verification);
    for (const Step step : {read_typed, read_row}) {
      if (const std::uint64_t made = allocations_of(step, *file); made != 0)
        throw std::runtime_error("1000 views made " + std::to_string(made) + " allocations");
    }
    const std::string tail = "/" + word;
    measure_alone("raw pointer" + tail, read_raw, file);
    measure_alone("as<float>" + tail, read_typed, file);
    measure_alone("rows" + tail, read_row, file);
    measure_alone("region and at" + tail, find_tensor, file);
    const std::uint64_t bytes = file->tensor->logical_bytes();
    suite.add("view and read " + size_name(bytes) + ", " + word, [=] {
      return Comparison{
          .ours = {"as<float>, every byte read",
                   [=] { read_all(as_byte_span(file->tensor->as<float>()), 1); }},
          .floor = {"raw mapping, every byte read",
                    [=] {
                      read_all(file->raw->bytes().subspan(file->tensor->stored_offset(), bytes), 1);
                    }},
          .bytes = bytes};
    });
  }
  return true;
}

}  // namespace thalia::bench::view_subject
