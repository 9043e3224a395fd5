// Models of several files, of safetensors and .thalia, saved over each other; texts that are
// edited.
#include <stdexcept>
#include <string>
#include <vector>

#include "crash/operation.h"
#include "integrity/content_hash.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/safetensors.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace safetensors_models {
namespace {

constexpr std::uint64_t kTensorBytes = 6000;

// As many tensors of one size: all names are in all models, so a mix would not show by them.
void save_step(const fs::path& folder, unsigned step, std::uint64_t tensors_in_a_shard,
               ShardKind kind = ShardKind::safetensors, Durability durability = Durability::full) {
  std::vector<std::vector<std::byte>> payloads;
  std::vector<NamedArray> tensors;
  for (unsigned i = 0; i < 4; ++i)
    payloads.push_back(test::random_bytes(kTensorBytes, step * 10 + i));
  for (unsigned i = 0; i < 4; ++i) {
    tensors.push_back({.name = "layer" + std::to_string(i),
                       .dtype = DType::f32,
                       .shape = {kTensorBytes / 4},
                       .bytes = payloads[i]});
  }
  ModelSaveOptions options{.kind = kind, .max_shard_bytes = tensors_in_a_shard * kTensorBytes};
  options.save.output = {.durability = durability, .reproducible = true};
  save_model(folder, tensors, SafetensorsMetadata{{"step", std::to_string(step)}}, options);
}

std::string observe(const fs::path& folder) {
  const AnyFile model = open_any(folder);
  integrity::Xxh3 hash;
  for (const fs::path& path : model.files())
    if (path.extension() != ".json") hash.update(test::bytes_of(open_any(path).facts().metadata));
  for (const AnyTensor& tensor : model.tensors()) {
    hash.update(test::bytes_of(tensor.name));
    hash.update(model.read(tensor.name).bytes());
  }
  return test::hex(hash.finish());
}

// Debris of a save that was cut short is gone after the next one.
void go_on(const fs::path& folder) {
  save_step(folder, 9, 2);
  const test::TemporaryFolder other;
  save_step(other.path(), 9, 2);
  if (observe(folder) != observe(other.path())) throw std::logic_error("the next save was lost");
  const std::string kept = "model.safetensors.index.json";
  const std::string index = test::read_file(folder / kept);
  for (const std::string& name : test::list_folder(folder)) {
    const bool is_of_a_model =
        name.ends_with(".safetensors") || name.ends_with(".thalia") || name.ends_with(".json");
    if (is_of_a_model && name != kept && index.find(name) == std::string::npos)
      throw std::logic_error("debris is left: " + name);
  }
}

template <std::uint64_t kInAShard, ShardKind kKind = ShardKind::safetensors>
void prepare(const fs::path& folder) {
  save_step(folder, 1, kInAShard, kKind);
}

// A whole file, and two models that come after it: saves that were killed when they had removed
// nothing yet.
void prepare_leftovers(const fs::path& folder) {
  save_step(folder, 1, 4, ShardKind::thalia);
  for (const ShardKind kind : {ShardKind::thalia, ShardKind::safetensors}) {
    const test::TemporaryFolder other;
    save_step(other.path(), 8, 2, kind);
    for (const std::string& name : test::list_folder(other.path()))
      fs::copy_file(other / name, folder / name);
  }
}

template <std::uint64_t kFirst, std::uint64_t kSecond, Durability kDurability = Durability::full,
          ShardKind kFirstKind = ShardKind::safetensors, ShardKind kSecondKind = kFirstKind>
void run(const fs::path& folder, Teller& teller) {
  for (const unsigned step : {2u, 3u}) {
    const std::string name = std::to_string(step);
    teller.attempt(name);
    save_step(folder, step, step == 2 ? kFirst : kSecond, step == 2 ? kFirstKind : kSecondKind,
              kDurability);
    kDurability == Durability::full ? teller.promise(name) : teller.finish(name);
  }
}

constexpr ShardKind kThalia = ShardKind::thalia;
constexpr ShardKind kOther = ShardKind::safetensors;

void run_edit(const fs::path& folder, Teller& teller) {
  for (const char* const text : {"2", "a longer text than it was"}) {
    teller.attempt(text);
    edit_safetensors_metadata(folder / "model.safetensors", {{"step", text}}, {.in_place = false});
    teller.promise(text);
  }
}

constexpr Operation kOperations[] = {
    {"safetensors model", prepare<2>, run<2, 1>, observe, go_on},
    {"safetensors model, named", prepare<2>, run_named<run<2, 1>>, observe, go_on},
    {"safetensors model, data", prepare<2>, run<2, 1, Durability::data>, observe, go_on},
    {"safetensors model and file", prepare<4>, run<2, 4>, observe, go_on},
    {"safetensors file and model, named", prepare<1>, run_named<run<4, 2>>, observe, go_on},
    {"thalia model", prepare<2, kThalia>, run<2, 1, Durability::full, kThalia>, observe, go_on},
    {"thalia model and file, data", prepare<4, kThalia>, run<2, 4, Durability::data, kThalia>,
     observe, go_on},
    {"models of both kinds", prepare<2, kThalia>, run<2, 1, Durability::full, kOther, kThalia>,
     observe, go_on},
    {"models of both kinds, named", prepare<2, kOther>,
     run_named<run<2, 4, Durability::full, kThalia, kOther>>, observe, go_on},
    {"models of both kinds, data", prepare<4, kThalia>,
     run<4, 2, Durability::data, kOther, kThalia>, observe, go_on},
    {"model over leftovers", prepare_leftovers, run<4, 2, Durability::full, kOther, kThalia>,
     observe, go_on},
    {"model over leftovers, data", prepare_leftovers, run<2, 4, Durability::data, kThalia, kOther>,
     observe, go_on},
    {"safetensors edit", prepare<4>, run_edit, observe, go_on},
    {"safetensors edit, named", prepare<4>, run_named<run_edit>, observe, go_on},
};

}  // namespace
}  // namespace safetensors_models

std::span<const Operation> safetensors_operations() {
  return safetensors_models::kOperations;
}

}  // namespace thalia::crash
