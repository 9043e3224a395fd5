// This library's side of a comparison with a peer. It reads commands from standard input, one a
// line, and answers each with a line: a number, which is the time taken in seconds unless said
// otherwise, or "error: " and why. bench/peers.py runs it. A process of its own keeps what one side
// leaves in memory away from the other.
//
//   make DTYPE COUNT BYTES SAFETENSORS [THALIA]
//                      writes COUNT tensors of BYTES bytes of f32 or bf16
//   state SAFETENSORS  holds copies of these tensors from now on
//   forget             holds nothing any more
//   save PATH SYNC IO  saves the state; SYNC none or full, IO automatic, buffered or direct
//   background PATH    saves durably in the background; seconds until the training can go on
//   memory PATH        saves durably; the most bytes of memory that this took
//   copy               copies the state into memory that was written to before
//   load PATH HOW VERIFY
//                      HOW views, copy, stream, copy_in_place or stream_in_place; VERIFY off or on
//   open PATH TENSOR RUNS
//                      opens the file, finds the tensor and touches it; seconds of one run
//   cold PATH          takes the file out of the page cache
//   settle FOLDER      waits until the disk has nothing left to do
//   touch FOLDER BYTES
//                      leaves that much free memory as the page cache uses it, touched lately
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "floors.h"
#include "paired.h"
#include "peer_state.h"
#include "thalia/async_save.h"
#include "thalia/reader.h"

namespace {

using namespace thalia;
using namespace thalia::bench;

template <typename Step>
double seconds_of(std::uint64_t runs, Step step) {
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < runs; ++i) step();
  return watch.seconds() / static_cast<double>(runs);
}

// A value of /proc/self/status, in bytes.
double status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == key + ":" && status >> kib) return kib * 1024;
  }
  throw std::runtime_error("/proc/self/status has no " + key);
}

class PeerSide {
 public:
  double answer(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    const auto found = kCommands.find(command);
    if (found == kCommands.end()) throw std::runtime_error("not understood: " + line);
    return (this->*found->second)(words);
  }

 private:
  using Words = std::istringstream;

  static std::string word(Words& words) {
    std::string text;
    words >> text;
    return text;
  }
  static std::uint64_t number(Words& words) { return std::stoull(word(words)); }

  double make(Words& words) {
    const DType dtype = word(words) == "bf16" ? DType::bf16 : DType::f32;
    const std::uint64_t count = number(words), bytes = number(words);
    const std::string safetensors = word(words);
    make_files(dtype, count, bytes, safetensors, word(words));
    return 0;
  }
  double state(Words& words) {
    state_ = PeerState();
    state_ = PeerState(word(words));
    return 0;
  }
  double forget(Words&) {
    state_ = PeerState();
    copy_.clear();
    saver_.reset();
    loader_.forget();
    return 0;
  }
  double save(Words& words) {
    const std::string path = word(words);
    const Durability durability = word(words) == "full" ? Durability::full : Durability::none;
    const std::string io = word(words);
    const IoMode mode = io == "buffered" ? IoMode::buffered
                        : io == "direct" ? IoMode::direct
                                         : IoMode::automatic;
    return seconds_of(1, [&] {
      state_.writer(path, {.output = {.durability = durability}, .io = mode}).commit();
    });
  }
  double background(Words& words) {
    const std::string path = word(words);
    if (!saver_) {
      saver_.emplace();
      std::uint64_t bytes = 0;
      for (const PeerTensor& tensor : state_.tensors()) bytes += tensor.memory.bytes().size();
      saver_->reserve(bytes);
      saver_->wait_until_reserved();
    }
    Writer writer = state_.writer(path, {});
    std::optional<SaveHandle<>> save;
    const double seconds = seconds_of(1, [&] { save = saver_->save_async(std::move(writer)); });
    save->wait();
    return seconds;
  }
  double memory(Words& words) {
    const std::string path = word(words);
    std::ofstream("/proc/self/clear_refs") << 5 << std::flush;  // forgets the greatest so far
    const double before = status_bytes("VmRSS");
    state_.writer(path, {}).commit();
    return status_bytes("VmHWM") - before;
  }
  double copy_state(Words&) {
    if (copy_.empty()) {
      for (const PeerTensor& tensor : state_.tensors())
        copy(tensor.memory.bytes(), copy_.emplace_back(tensor.memory.bytes().size()).bytes());
    }
    return seconds_of(1, [&] {
      for (std::size_t i = 0; i < copy_.size(); ++i)
        copy(state_.tensors()[i].memory.bytes(), copy_[i].bytes());
    });
  }
  double load(Words& words) {
    static const std::map<std::string, Load> kWays{{"views", Load::views},
                                                   {"copy", Load::copy},
                                                   {"stream", Load::stream},
                                                   {"copy_in_place", Load::copy_in_place},
                                                   {"stream_in_place", Load::stream_in_place}};
    const std::string path = word(words);
    const Load how = kWays.at(word(words));
    return loader_.load(path, how,
                        word(words) == "on" ? Verification::on_first_touch : Verification::off);
  }
  double open(Words& words) {
    const std::string path = word(words), tensor = word(words);
    return seconds_of(number(words),
                      [&] { touch_pages(Reader::open(path).region("model").at(tensor).bytes()); });
  }
  double cold(Words& words) {
    drop_from_cache(word(words));
    return 0;
  }
  double settle(Words& words) {
    measure::settle(word(words));
    return 0;
  }

  double touch(Words& words) {
    const std::string folder = word(words);
    measure::touch_free_memory(folder, number(words));
    return 0;
  }

  PeerState state_;
  PeerLoader loader_;
  std::vector<TensorMemory> copy_;
  std::optional<AsyncSaver> saver_;

  static const std::map<std::string, double (PeerSide::*)(Words&)> kCommands;
};

const std::map<std::string, double (PeerSide::*)(PeerSide::Words&)> PeerSide::kCommands{
    {"make", &PeerSide::make},
    {"state", &PeerSide::state},
    {"forget", &PeerSide::forget},
    {"save", &PeerSide::save},
    {"load", &PeerSide::load},
    {"open", &PeerSide::open},
    {"memory", &PeerSide::memory},
    {"cold", &PeerSide::cold},
    {"settle", &PeerSide::settle},
    {"copy", &PeerSide::copy_state},
    {"background", &PeerSide::background},
    {"touch", &PeerSide::touch},
};

}  // namespace

int main() {
  PeerSide side;
  std::cout.precision(9);
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << side.answer(line) << std::endl;
    } catch (const std::exception& error) {
      std::cout << "error: " << error.what() << std::endl;
    }
  }
}
