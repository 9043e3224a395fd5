// The states of a program that was recorded, for one who opens them in another language:
//
//   crash_states LOG BEFORE AFTER SCRATCH MODE N SEED
//
// BEFORE is a copy of the folder as it was, with which AFTER, the folder that was recorded, began.
// Fails where the log does not lead from one to the other. For each state, SCRATCH is the folder,
// and a line says what was told by then, "attempt NAME" or "promise NAME" joined by tabs; a line
// that comes back asks for the next. MODE is one of disk.h, or `killed`: only the process ends, and
// all that it did is there.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "crash/call_log.h"
#include "crash/disk.h"
#include "crash/states.h"

using namespace thalia::crash;
namespace fs = std::filesystem;

namespace {

// The folder as it was, its files known by the inodes that they had in the folder that was
// recorded: prepared there, they were copied, and keep their names.
Tree before_with_inodes(const fs::path& inodes, const fs::path& before) {
  Tree tree = read_tree(before);
  tree.inodes.clear();
  std::string line;
  FILE* const file = std::fopen(inodes.c_str(), "r");
  if (file == nullptr) throw std::runtime_error("no list of inodes");
  char path[4096];
  unsigned long long inode = 0;
  while (std::fscanf(file, "%llu %4095[^\n]\n", &inode, path) == 2) {
    std::size_t node = 0;
    for (const fs::path& name : fs::path(path))
      if (name != ".") node = tree.nodes[node].names.at(name.string());
    tree.inodes[inode] = node;
  }
  std::fclose(file);
  return tree;
}

std::string told_at(const CallLog& log, std::size_t place) {
  std::string told;
  for (const Call& call : log.calls) {
    if (call.begin >= place) break;
    if (call.kind != Kind::attempt && call.kind != Kind::promise) continue;
    told += fmt::format("{}{} {}", told.empty() ? "" : "\t",
                        call.kind == Kind::attempt ? "attempt" : "promise", call.name);
  }
  return told;
}

int run(char** arguments) {
  const fs::path scratch = arguments[4];
  const CallLog log = read_log(
      arguments[1], before_with_inodes(fs::path(arguments[2]).concat(".inodes"), arguments[2]));
  const std::string there = listing(read_tree(arguments[3]));
  const std::string made = listing(played_back(log));
  if (there != made)
    throw std::runtime_error("the recorder missed something. In the folder:\n" + there +
                             "by the log:\n" + made);
  std::set<std::pair<std::uint64_t, std::string>> known;
  const auto visit = [&](const Tree& tree, std::size_t place) {
    const std::string told = told_at(log, place);
    if (!known.emplace(hash(tree), told).second) return false;
    fs::remove_all(scratch);
    write_tree(tree, scratch);
    std::cout << told << std::endl;
    std::string answer;
    if (!std::getline(std::cin, answer)) throw std::runtime_error("nobody asks for the next state");
    return true;
  };
  const std::string mode = arguments[5];
  if (mode == "killed") {
    const Disk disk(log, Mode::ordered);
    for (std::size_t place = 0; place < disk.places(); ++place) {
      const Moment moment = disk.at(place);
      visit(moment.state(moment.everything()), place);
    }
    return 0;
  }
  for (const Mode known_mode : kModes)
    if (mode_name(known_mode) == mode) {
      visit_states(log, known_mode, std::strtoull(arguments[6], nullptr, 10),
                   std::strtoull(arguments[7], nullptr, 10), visit);
      return 0;
    }
  throw std::runtime_error("no such mode: " + mode);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 8)
      throw std::runtime_error("usage: crash_states LOG BEFORE AFTER SCRATCH MODE N SEED");
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
