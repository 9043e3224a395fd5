// One flipped bit somewhere in a copy of a checkpoint: is it found, and is the right tensor named?
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include "demo/commands.h"
#include "demo/print.h"
#include "spiking/random.h"
#include "thalia/error.h"
#include "thalia/reader.h"
#include "thalia/verify.h"

namespace demo {
namespace {

namespace fs = std::filesystem;

struct Bit {
  std::string region;
  std::string tensor;
  std::uint64_t offset;  ///< in the file
  unsigned bit;
};

/// A byte of some tensor, each as likely as any other; another one for each saved file, since the
/// closing checksum decides.
Bit choose_bit(const thalia::Reader& reader) {
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < reader.region_count(); ++i)
    total += reader.region(i).stored_bytes();
  if (total == 0) throw std::runtime_error(reader.path().string() + ": no payload to damage");

  std::uint64_t seed = 0;
  std::memcpy(&seed, reader.closing_checksum().bytes, sizeof seed);
  const spiking::Random4 draws = spiking::Random(seed, spiking::Stream::damage, 0).at(0, 0);
  std::uint64_t place = ((std::uint64_t{draws[0]} << 32) | draws[1]) % total;
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    const thalia::RegionView region = reader.region(i);
    for (std::uint32_t k = 0; k < region.tensor_count(); ++k) {
      const thalia::TensorView tensor = region.tensor(k);
      if (place < tensor.stored_bytes()) {
        return {std::string(region.name()), std::string(tensor.name()),
                tensor.stored_offset() + place, draws[2] % 8};
      }
      place -= tensor.stored_bytes();
    }
  }
  throw std::runtime_error(reader.path().string() + ": regions and tensors count differently");
}

void flip(const fs::path& file, const Bit& bit) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(bit.offset));
  const int byte = stream.get();
  stream.seekp(static_cast<std::streamoff>(bit.offset));
  stream.put(static_cast<char>(byte ^ (1 << bit.bit)));
  stream.close();
  if (!stream) throw std::runtime_error(file.string() + ": a bit cannot be flipped");
}

/// What a program that just reads the tensor gets to hear; nullopt: nothing.
std::optional<std::string> refusal(const fs::path& file, const Bit& bit, unsigned threads) {
  try {
    const thalia::Reader reader = thalia::Reader::open(file, {.work = {.threads = threads}});
    const thalia::TensorView tensor = reader.region(bit.region).at(bit.tensor);
    std::vector<std::byte> copy(tensor.logical_bytes());
    tensor.read(copy);
  } catch (const thalia::IntegrityError& error) {
    return error.what();
  }
  return std::nullopt;
}

/// Removes the copy whatever happens.
struct Copy {
  Copy(const fs::path& file, fs::path copy) : path(std::move(copy)) {
    fs::copy_file(file, path, fs::copy_options::overwrite_existing);
  }
  ~Copy() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  fs::path path;
};

}  // namespace

int damage(const Options& options) {
  if (options.arguments.size() != 1) throw UsageMistake("damage: takes FILE");
  const fs::path file = options.arguments[0];
  const Bit bit = choose_bit(thalia::Reader::open(file));
  const Copy copy(file, file.string() + ".damaged");
  flip(copy.path, bit);
  std::printf("  flip    bit %u of byte %s in a copy, which lies in %s/%s\n", bit.bit,
              with_commas(bit.offset).c_str(), printable(bit.region).c_str(),
              printable(bit.tensor).c_str());

  const thalia::VerifyReport found =
      thalia::verify(copy.path, {.work = {.threads = options.threads}});
  const auto named = std::ranges::find_if(found.findings, [&](const thalia::Finding& finding) {
    return finding.severity == thalia::Severity::error && finding.region == bit.region &&
           finding.tensor == bit.tensor;
  });
  if (found.ok() || named == found.findings.end()) {
    std::printf("  verify  NOT FOUND: no finding names the tensor, out of %zu\n",
                found.findings.size());
    return kCheckFailed;
  }
  std::printf("  verify  found in %s: region %s, tensor %s:\n          %s\n",
              seconds_text(found.seconds).c_str(), printable(named->region).c_str(),
              printable(named->tensor).c_str(), named->message.c_str());

  const auto refused = refusal(copy.path, bit, options.threads);
  if (!refused) {
    std::printf("  read    NOT REFUSED: the tensor was handed out\n");
    return kCheckFailed;
  }
  std::printf("  read    refused: %s\n", refused->c_str());
  return kDone;
}

}  // namespace demo
