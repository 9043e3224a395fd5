// This library's side of a comparison with a peer: reads commands from standard input, one a line,
// and answers each with the seconds it took. bench/peers.py runs it.
//
//   make COUNT BYTES THALIA SAFETENSORS   writes COUNT tensors of BYTES bytes of f32 to two files
//   open PATH TENSOR RUNS                 opens, finds, touches; seconds of one run
//   load PATH                             views of all tensors, every page touched
//   save PATH FROM SYNC                   the tensors of FROM; SYNC is none or full
#include <chrono>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "floors.h"
#include "samples.h"
#include "scratch.h"
#include "thalia/reader.h"
#include "thalia/safetensors.h"

namespace {

using namespace thalia;
using namespace thalia::bench;

template <typename Step>
double seconds_of(std::uint64_t runs, Step step) {
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < runs; ++i) step();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(runs);
}

void make(std::uint64_t count, std::uint64_t bytes, const std::string& thalia_path,
          const std::string& safetensors_path) {
  const auto weights = normal_f32(count * bytes);
  const ByteSpan payload = as_byte_span(weights);
  bench::save(thalia_path, payload, DType::f32, bytes);
  std::vector<SafetensorsTensor> tensors;
  for (std::uint64_t i = 0; i < count; ++i) {
    tensors.push_back({.name = tensor_name(i),
                       .shape = {bytes / sizeof(float)},
                       .bytes = payload.subspan(i * bytes, bytes)});
  }
  save_safetensors(safetensors_path, std::move(tensors), std::nullopt, Durability::none);
}

double open_file(const std::string& path, const std::string& tensor, std::uint64_t runs) {
  return seconds_of(runs,
                    [&] { touch_pages(Reader::open(path).region("model").at(tensor).bytes()); });
}

double load(const std::string& path) {
  return seconds_of(1, [&] {
    const Reader reader = Reader::open(path);
    const RegionView region = reader.region("model");
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) touch_pages(region.tensor(i).bytes());
  });
}

double save(const std::string& path, const std::string& from, Durability durability) {
  // In private memory, as a trainer's weights are.
  const SafetensorsFile source = SafetensorsFile::open(from);
  std::vector<std::vector<std::byte>> copies;
  for (const SafetensorsTensor& tensor : source.tensors())
    copies.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
  return seconds_of(1, [&] {
    Writer writer(path, {.durability = durability});
    const RegionId region = writer.add_region({.name = "model"});
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const SafetensorsTensor& tensor = source.tensors()[i];
      writer.add_tensor(region, {.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape},
                        copies[i]);
    }
    writer.commit();
  });
}

std::string answer(const std::string& line) {
  std::istringstream words(line);
  std::string command, first, second, third;
  std::uint64_t count = 0, bytes = 0;
  words >> command;
  double seconds = 0;
  if (command == "make" && words >> count >> bytes >> first >> second) {
    make(count, bytes, first, second);
  } else if (command == "open" && words >> first >> second >> count) {
    seconds = open_file(first, second, count);
  } else if (command == "load" && words >> first) {
    seconds = load(first);
  } else if (command == "save" && words >> first >> second >> third) {
    seconds = save(first, second, third == "full" ? Durability::full : Durability::none);
  } else {
    return "error: not understood: " + line;
  }
  std::ostringstream text;
  text.precision(9);
  text << seconds;
  return text.str();
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << answer(line) << std::endl;
    } catch (const std::exception& error) {
      std::cout << "error: " << error.what() << std::endl;
    }
  }
}
