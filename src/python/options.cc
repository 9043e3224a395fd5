#include "python/options.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <nanobind/stl/optional.h>

#include "python/calls.h"
#include "python/choices.h"
#include "python/text.h"
#include "thalia/error.h"

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
  save.compression.codec = chosen<Codec>("compression", name,
                                         {{"none", Codec::store},
                                          {"plane_entropy", Codec::plane_entropy},
                                          {"packed_exponents", Codec::packed_exponents},
                                          {"zstd", Codec::zstd},
                                          {"lz4", Codec::lz4},
                                          {"auto", Codec::store}});
}

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
  for (const auto& [key, value] : arguments) {
    const auto name = nb::cast<std::string>(key);
    const auto text = [&, v = value] { return nb::cast<std::string>(v); };
    if (value.is_none()) continue;  // as if it were not there
    if (name == "compression") {
      set_compression(save, text());
    } else if (name == "level") {
      save.compression.level = nb::cast<int>(value);
    } else if (name == "chunk_bytes") {
      save.compression.chunk_bytes = nb::cast<std::uint32_t>(value);
    } else if (name == "checksum") {
      save.checksum = checksum_of(text());
    } else if (name == "leaves") {
      save.leaves = leaves_of(text());
    } else if (name == "sha256") {
      save.sha256 = nb::cast<bool>(value);
    } else if (name == "timestamp") {
      save.timestamp = nb::cast<std::uint64_t>(value);
    } else if (name == "durability") {
      save.output.durability = durability_of(text());
    } else if (name == "replace") {
      save.output.replace = nb::cast<bool>(value);
    } else if (name == "reproducible") {
      save.output.reproducible = nb::cast<bool>(value);
    } else if (name == "io") {
      save.io = io_of(text());
    } else if (name == "queue_depth") {
      save.queue_depth = nb::cast<unsigned>(value);
    } else if (name == "threads") {
      save.work.threads = nb::cast<unsigned>(value);
    } else if (name == "memory_bytes") {
      save.work.memory_bytes = nb::cast<std::uint64_t>(value);
    } else if (name == "progress") {
      save.work.progress = progress_of(nb::borrow(value));
    } else {
      throw nb::type_error(("unexpected keyword argument '" + name + "'").c_str());
    }
  }
  return save;
}

Compression fixed_compression(const SaveOptions& save) {
  if (save.automatic_codec) fail_choice("compression", "auto", "the name of a codec");
  return save.compression;
}

}  // namespace thalia::python
