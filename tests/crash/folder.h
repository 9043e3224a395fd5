// A folder as a value: what a disk holds at a moment, read from one and written to one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace thalia::crash {

/// Files and folders have numbers, and names lead to them: so one file may have several names.
struct Node {
  enum class Kind { file, folder, symlink };
  Kind kind = Kind::file;
  std::string bytes;                         ///< of a file; where a symlink leads
  std::map<std::string, std::size_t> names;  ///< of a folder: numbers of nodes
};
struct Tree {
  std::vector<Node> nodes{{.kind = Node::Kind::folder}};  ///< the first is the folder itself
  std::map<std::uint64_t, std::size_t> inodes;            ///< where read_tree() found them
};

Tree read_tree(const std::filesystem::path& folder);
/// Into a folder that is empty or not there.
void write_tree(const Tree& tree, const std::filesystem::path& folder);

/// One line for each name, with what is there: equal for folders that hold the same.
std::string listing(const Tree& tree);
/// The same as a number; files of one content that are one file differ from those that are two.
std::uint64_t hash(const Tree& tree);

}  // namespace thalia::crash
