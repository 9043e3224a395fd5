// The tour over a model that somebody trained: to .thalia, in and out of it, and back.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "demo/commands.h"
#include "demo/print.h"
#include "demo/process.h"
#include "demo/table.h"
#include "thalia/formats/safetensors.h"
#include "thalia/reader.h"

namespace demo {
namespace {

namespace fs = std::filesystem;

bool same_bytes(const fs::path& a, const fs::path& b) {
  if (fs::file_size(a) != fs::file_size(b)) return false;
  std::ifstream first(a, std::ios::binary);
  std::ifstream second(b, std::ios::binary);
  std::vector<char> ours(1 << 20);
  std::vector<char> theirs(1 << 20);
  while (first.read(ours.data(), static_cast<std::streamsize>(ours.size())), first.gcount() > 0) {
    second.read(theirs.data(), static_cast<std::streamsize>(theirs.size()));
    if (first.gcount() != second.gcount() ||
        std::memcmp(ours.data(), theirs.data(), static_cast<std::size_t>(first.gcount())) != 0) {
      return false;
    }
  }
  return !first.bad() && second.peek() == std::ifstream::traits_type::eof();
}

/// The name of the first tensor that differs in anything; empty: none does.
std::string first_difference(const thalia::SafetensorsFile& a, const thalia::SafetensorsFile& b) {
  const auto by_name = [](const thalia::SafetensorsFile& file) {
    std::vector<const thalia::NamedArray*> tensors;
    for (const auto& tensor : file.tensors()) tensors.push_back(&tensor);
    std::ranges::sort(tensors, {}, &thalia::NamedArray::name);
    return tensors;
  };
  const auto ours = by_name(a);
  const auto theirs = by_name(b);
  for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    if (i >= theirs.size()) return ours[i]->name;
    if (i >= ours.size() || ours[i]->name != theirs[i]->name ||
        ours[i]->dtype != theirs[i]->dtype || ours[i]->shape != theirs[i]->shape ||
        !std::ranges::equal(ours[i]->bytes, theirs[i]->bytes)) {
      return theirs[i]->name;
    }
  }
  return "";
}

int compare(const fs::path& model, const fs::path& back) {
  if (same_bytes(model, back)) {
    std::printf("\n  compare the %s bytes are those of %s, every one\n",
                with_commas(fs::file_size(back)).c_str(), model.c_str());
    return kDone;
  }
  const auto original = thalia::SafetensorsFile::open(model);
  const auto returned = thalia::SafetensorsFile::open(back);
  if (const std::string name = first_difference(original, returned); !name.empty()) {
    std::printf("\n  compare DIFFERENT: tensor %s\n", printable(name).c_str());
    return kCheckFailed;
  }
  auto before = original.metadata();
  auto after = returned.metadata();
  std::ranges::sort(before);
  std::ranges::sort(after);
  if (before != after) {
    std::printf("\n  compare DIFFERENT: __metadata__\n");
    return kCheckFailed;
  }
  std::printf(
      "\n  compare all %zu tensors and the metadata are equal in name, dtype, shape and bytes; "
      "the\n"
      "          file itself is laid out as the reference writer would, which %s is not\n",
      original.tensors().size(), model.c_str());
  return kDone;
}

/// A tensor to look at: one of the smallest that is not a single number.
std::string small_tensor(const fs::path& file) {
  const thalia::Reader reader = thalia::Reader::open(file);
  std::string best;
  std::uint64_t fewest = ~std::uint64_t{0};
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    const thalia::RegionView region = reader.region(i);
    for (std::uint32_t k = 0; k < region.tensor_count(); ++k) {
      const thalia::TensorView tensor = region.tensor(k);
      if (tensor.element_count() < 2 || tensor.element_count() >= fewest) continue;
      fewest = tensor.element_count();
      best = std::string(region.name()) + "/" + std::string(tensor.name());
    }
  }
  return best;
}

void show_figures(std::map<std::string, double> f, double convert_seconds, double back_seconds,
                  const fs::path& model) {
  const auto model_bytes = static_cast<double>(fs::file_size(model));
  std::printf("\nFigures of this run, on this machine\n");
  print_table({
      {"convert to .thalia, synced", model_bytes, convert_seconds},
      {"  the .thalia file", f["file_bytes"], 0},
      {"open", 0, f["open_seconds"]},
      {"load one region, checked", f["region_bytes"], f["region_seconds"]},
      {"  of the file touched for it", f["touched_bytes"], 0},
      {"verify the whole file", f["file_bytes"], f["verify_seconds"]},
      {"convert back, synced", f["file_bytes"], back_seconds},
  });
  std::printf(
      "\n  Converting is the time of the whole command, its start included. Nothing dropped the "
      "file\n"
      "  from the page cache between the steps, so reading is mostly from memory.\n");
}

}  // namespace

int model_tour(const Options& options) {
  if (options.arguments.size() != 1) throw UsageMistake("model: takes MODEL.safetensors");
  const fs::path model = options.arguments[0];
  const fs::path folder = shorter_path(options.folder);
  const fs::path converted = folder / "model.thalia";
  const fs::path back = folder / "back.safetensors";
  const fs::path measured = folder / "model-figures.txt";
  const Figures figures(measured);
  std::printf("%s (%s) becomes a .thalia file, and a .safetensors file again.\n", model.c_str(),
              bytes_text(static_cast<double>(fs::file_size(model))).c_str());
  prepare_folder(folder, 3 * fs::file_size(model) + 10'000'000);
  fs::remove(measured);

  const std::string self = this_program();
  const std::string thalia = thalia_program(options.thalia);
  std::printf("\n1  Convert it. Tensors are grouped into regions by the parts of their names.\n");
  const double convert_seconds = run_command({thalia, "convert", model, converted});
  run_command({thalia, "info", converted});
  run_command({thalia, "ls", converted});
  std::printf("\n2  Another process maps the file, loads one region, and verifies it all.\n");
  run_command({self, "inspect", converted, "--figures", measured});
  std::printf("\n3  Convert it back, and compare.\n");
  const double back_seconds = run_command({thalia, "convert", converted, back});
  if (const int status = compare(model, back); status != kDone) return status;
  std::printf("\n4  A copy of the file with a single flipped bit.\n");
  run_command({self, "damage", converted});

  show_figures(figures.read(), convert_seconds, back_seconds, model);
  std::vector<NextStep> next{
      {{thalia, "info", converted}, "header, totals, checksum"},
      {{thalia, "ls", converted}, "the regions"},
      {{thalia, "verify", converted}, "everything that could be wrong"},
  };
  if (const std::string tensor = small_tensor(converted); !tensor.empty())
    next.insert(next.end() - 1, {{thalia, "cat", converted, tensor}, "one tensor's numbers"});
  print_next_steps(next);
  return kDone;
}

}  // namespace demo
