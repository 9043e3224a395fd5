// Options as keyword arguments, by one table: a name that is not in it is a TypeError with a
// suggestion, a value that cannot be a UsageError that names the argument. None is as if it were
// not there.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "base/suggestion.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "thalia/error.h"
#include "thalia/tensor.h"
#include "thalia/text.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

ChecksumType checksum_of(std::string_view name) {
  return chosen<ChecksumType>("checksum", name,
                              {{"block_tree", ChecksumType::block_tree},
                               {"sha256", ChecksumType::sha256},
                               {"crc32", ChecksumType::crc32},
                               {"none", ChecksumType::none}});
}

LeafAlgorithm leaves_of(std::string_view name) {
  return chosen<LeafAlgorithm>(
      "leaves", name, {{"xxh3_128", LeafAlgorithm::xxh3_128}, {"sha256", LeafAlgorithm::sha256}});
}

Durability durability_of(std::string_view name) {
  return chosen<Durability>(
      "durability", name,
      {{"full", Durability::full}, {"data", Durability::data}, {"none", Durability::none}});
}

IoMode io_of(std::string_view name) {
  return chosen<IoMode>("io", name,
                        {{"automatic", IoMode::automatic},
                         {"buffered", IoMode::buffered},
                         {"direct", IoMode::direct}});
}

void set_compression(SaveOptions& save, std::string_view name) {
  if (name == "auto") {
    save.automatic_codec = true;
    return;
  }
  const auto named = [](Codec codec) { return std::pair(codec_name(codec), codec); };
  save.compression.codec = chosen<Codec>("compression", name,
                                         {named(Codec::none),
                                          named(Codec::plane_entropy),
                                          named(Codec::packed_exponents),
                                          named(Codec::zstd),
                                          named(Codec::lz4),
                                          {"auto", Codec::none}});
}

struct SaveOption {
  std::string_view name;
  void (*set)(SaveOptions& save, nb::handle value);
};

template <typename T = std::string>
T value_of(nb::handle value) {
  return nb::cast<T>(value);
}

constexpr std::array kSaveOptions = {
    SaveOption{"compression",
               [](SaveOptions& s, nb::handle v) { set_compression(s, value_of(v)); }},
    SaveOption{"compression_level",
               [](SaveOptions& s, nb::handle v) { s.compression.level = value_of<int>(v); }},
    SaveOption{"chunk_bytes",
               [](SaveOptions& s, nb::handle v) {
                 s.compression.chunk_bytes = value_of<std::uint32_t>(v);
               }},
    SaveOption{"checksum",
               [](SaveOptions& s, nb::handle v) { s.checksum = checksum_of(value_of(v)); }},
    SaveOption{"leaves", [](SaveOptions& s, nb::handle v) { s.leaves = leaves_of(value_of(v)); }},
    SaveOption{"sha256", [](SaveOptions& s, nb::handle v) { s.sha256 = value_of<bool>(v); }},
    SaveOption{"timestamp",
               [](SaveOptions& s, nb::handle v) { s.timestamp = value_of<std::uint64_t>(v); }},
    SaveOption{
        "durability",
        [](SaveOptions& s, nb::handle v) { s.output.durability = durability_of(value_of(v)); }},
    SaveOption{"replace",
               [](SaveOptions& s, nb::handle v) { s.output.replace = value_of<bool>(v); }},
    SaveOption{"follow_link",
               [](SaveOptions& s, nb::handle v) {
                 s.output.link = value_of<bool>(v) ? OutputLink::followed : OutputLink::refused;
               }},
    SaveOption{"reproducible",
               [](SaveOptions& s, nb::handle v) { s.output.reproducible = value_of<bool>(v); }},
    SaveOption{"io", [](SaveOptions& s, nb::handle v) { s.io = io_of(value_of(v)); }},
    SaveOption{"queue_depth",
               [](SaveOptions& s, nb::handle v) { s.queue_depth = value_of<unsigned>(v); }},
    SaveOption{"threads",
               [](SaveOptions& s, nb::handle v) { s.work.threads = value_of<unsigned>(v); }},
    SaveOption{
        "memory_bytes",
        [](SaveOptions& s, nb::handle v) { s.work.memory_bytes = value_of<std::uint64_t>(v); }},
    SaveOption{"progress",
               [](SaveOptions& s, nb::handle v) { s.work.progress = progress_of(nb::borrow(v)); }},
};

}  // namespace

Access access_of(std::string_view name) {
  return chosen<Access>(
      "access", name,
      {{"mapped", Access::mapped}, {"copied", Access::copied}, {"writable", Access::writable}});
}

Verification verification_of(std::string_view name) {
  return chosen<Verification>("verification", name,
                              {{"on_first_touch", Verification::on_first_touch},
                               {"at_open", Verification::at_open},
                               {"by_tensor", Verification::by_tensor},
                               {"off", Verification::off}});
}

DType dtype_of(std::string_view name) {
  if (const auto dtype = dtype_from_name(name)) return *dtype;
  throw UnsupportedDtypeError(std::string(name));
}

Role role_of(std::string_view name) {
  if (const auto role = role_from_name(name)) return *role;
  std::string names;
  for (std::uint8_t r = 0; r < kRoleCount; ++r)
    names += (r == 0 ? "" : ", ") + std::string(role_name(Role{r}));
  fail_choice("role", name, names);
}

NeuronType neuron_type_of(std::string_view name) {
  for (int code = 0; code < 256; ++code) {
    const auto type = static_cast<NeuronType>(code);
    if (neuron_type_name(type) == name) return type;
  }
  fail_choice("neuron_type", name, "a neuron type");
}

ReadOptions read_options(std::string_view access, std::string_view verification, unsigned threads) {
  return {.input = {.access = access_of(access)},
          .verification = verification_of(verification),
          .work = {.threads = threads}};
}

ChainOptions chain_options(std::string_view access, std::vector<std::filesystem::path> search,
                           unsigned threads, bool legacy) {
  ChainOptions chain{.read = read_options(access, "on_first_touch", threads),
                     .search = std::move(search)};
  chain.read.input.legacy = legacy;
  return chain;
}

SaveOptions save_options(const nb::dict& arguments) {
  SaveOptions save;
  save.output.link = OutputLink::followed;
  for (const auto& [key, value] : arguments) {
    const auto name = nb::cast<std::string>(key);
    const auto* const option = std::ranges::find(kSaveOptions, name, &SaveOption::name);
    if (option == std::ranges::end(kSaveOptions)) {
      const std::string hint = suggestion_among(name, kSaveOptions, &SaveOption::name);
      throw nb::type_error(
          ("unexpected keyword argument '" + printable(name) + "'" + hint).c_str());
    }
    if (!value.is_none()) option->set(save, value);  // else as if it were not there
  }
  return save;
}

Compression fixed_compression(const SaveOptions& save) {
  if (save.automatic_codec) fail_choice("compression", "auto", "the name of a codec");
  return save.compression;
}

LowRankOptions low_rank_options(const nanobind::dict& members) {
  return {.bits_per_element = nb::cast<double>(members["bits_per_element"]),
          .max_rank = nb::cast<std::uint32_t>(members["max_rank"]),
          .max_relative_error = nb::cast<double>(members["max_relative_error"]),
          .include = nb::cast<std::vector<std::string>>(members["include"]),
          .min_elements = nb::cast<std::uint64_t>(members["min_elements"]),
          .max_generations = nb::cast<std::optional<std::uint16_t>>(members["max_generations"])};
}

}  // namespace thalia::python
