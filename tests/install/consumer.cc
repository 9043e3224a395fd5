// Somebody else's program: built with nothing but what pkg-config says of the installed library.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <thalia/formats.h>
#include <thalia/state.h>
#include <thalia/thalia.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  const std::filesystem::path path(argv[1]);
  std::vector<std::int32_t> saved(1000);
  std::iota(saved.begin(), saved.end(), -500);
  try {
    thalia::Writer writer(path, {.output = {.durability = thalia::Durability::none}});
    const thalia::RegionId region = writer.add_region({.name = "installed"});
    writer.add_tensor(region, {.name = "numbers", .dtype = thalia::DType::i32, .shape = {10, 100}},
                      thalia::as_byte_span(saved));
    writer.commit();

    const thalia::Reader reader =
        thalia::Reader::open(path, {.verification = thalia::Verification::at_open});
    const auto mapped = reader.region("installed").at("numbers").as<std::int32_t>();
    if (!std::equal(mapped.begin(), mapped.end(), saved.begin(), saved.end())) {
      std::fprintf(stderr, "the mapped numbers are not the saved ones\n");
      return 1;
    }
    if (!thalia::verify(path, {.work = {.threads = 1}}).ok()) {
      std::fprintf(stderr, "the saved file does not verify\n");
      return 1;
    }
  } catch (const thalia::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::printf("saved, mapped and verified with thalia %s\n",
              std::string(thalia::library_version()).c_str());
  return 0;
}
