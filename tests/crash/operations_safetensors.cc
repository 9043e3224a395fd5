// Models of several safetensors files, saved over each other; texts that are edited.
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
void save_model(const fs::path& folder, unsigned step, std::uint64_t tensors_in_a_shard,
                Durability durability = Durability::full) {
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
  SafetensorsModelSaveOptions options{.max_shard_bytes = tensors_in_a_shard * kTensorBytes};
  options.output.durability = durability;
  save_safetensors_model(folder, tensors, SafetensorsMetadata{{"step", std::to_string(step)}},
                         options);
}

std::string observe(const fs::path& folder) {
  const AnyFile model = open_any(folder, {}, FileFormat::safetensors);
  integrity::Xxh3 hash;
  for (const fs::path& path : model.files()) {
    if (path.extension() != ".safetensors") continue;
    const SafetensorsFile file = SafetensorsFile::open(path);
    for (const auto& [key, text] : file.metadata()) hash.update(test::bytes_of(key + "=" + text));
  }
  for (const AnyTensor& tensor : model.tensors()) {
    hash.update(test::bytes_of(tensor.name));
    hash.update(model.read(tensor.name).bytes());
  }
  return test::hex(hash.finish());
}

// Debris of a save that was cut short is gone behind the next one.
void go_on(const fs::path& folder) {
  save_model(folder, 9, 2);
  const test::TemporaryFolder other;
  save_model(other.path(), 9, 2);
  if (observe(folder) != observe(other.path())) throw std::logic_error("the next save was lost");
  const std::string index = test::read_file(folder / "model.safetensors.index.json");
  for (const std::string& name : test::list_folder(folder))
    if (name.ends_with(".safetensors") && index.find(name) == std::string::npos)
      throw std::logic_error("debris is left: " + name);
}

template <std::uint64_t kInAShard>
void prepare(const fs::path& folder) {
  save_model(folder, 1, kInAShard);
}

template <std::uint64_t kFirst, std::uint64_t kSecond, Durability kDurability = Durability::full>
void run(const fs::path& folder, Teller& teller) {
  for (const unsigned step : {2u, 3u}) {
    const std::string name = std::to_string(step);
    teller.attempt(name);
    save_model(folder, step, step == 2 ? kFirst : kSecond, kDurability);
    kDurability == Durability::full ? teller.promise(name) : teller.finish(name);
  }
}

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
    {"safetensors edit", prepare<4>, run_edit, observe, go_on},
    {"safetensors edit, named", prepare<4>, run_named<run_edit>, observe, go_on},
};

}  // namespace
}  // namespace safetensors_models

std::span<const Operation> safetensors_operations() {
  return safetensors_models::kOperations;
}

}  // namespace thalia::crash
