#include "crash/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <functional>
#include <set>
#include <stdexcept>

#include "integrity/content_hash.h"
#include "support/files.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace {

std::uint64_t inode_of(const fs::path& path) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0)
    throw std::runtime_error("no such file: " + path.string());
  return status.st_ino;
}

void read_folder(Tree& tree, const fs::path& folder, std::size_t number) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const auto [found, is_new] = tree.inodes.emplace(inode_of(entry.path()), tree.nodes.size());
    tree.nodes[number].names[entry.path().filename().string()] = found->second;
    if (!is_new) continue;
    const std::size_t child = tree.nodes.size();
    tree.nodes.emplace_back();
    if (entry.is_symlink()) {
      tree.nodes[child] = {Node::Kind::symlink, fs::read_symlink(entry.path()).string(), {}};
    } else if (entry.is_directory()) {
      tree.nodes[child].kind = Node::Kind::folder;
      read_folder(tree, entry.path(), child);
    } else {
      tree.nodes[child].bytes = test::read_file(entry.path());
    }
  }
}

// Calls visit(path, number) for each name, folders before what is in them. A folder that a lost
// rename left under two names is entered once.
void walk(const Tree& tree, const std::function<void(const std::string&, std::size_t)>& visit) {
  std::set<std::size_t> entered;
  const std::function<void(const std::string&, std::size_t)> enter = [&](const std::string& path,
                                                                         std::size_t folder) {
    if (!entered.insert(folder).second) return;
    for (const auto& [name, number] : tree.nodes[folder].names) {
      const std::string child = path.empty() ? name : path + "/" + name;
      visit(child, number);
      if (tree.nodes[number].kind == Node::Kind::folder) enter(child, number);
    }
  };
  enter("", 0);
}

Digest128 digest(const std::string& bytes) {
  integrity::Xxh3 hasher;
  hasher.update(test::bytes_of(bytes));
  return hasher.finish();
}

}  // namespace

Tree read_tree(const fs::path& folder) {
  Tree tree;
  tree.inodes.emplace(inode_of(folder), 0);
  read_folder(tree, folder, 0);
  return tree;
}

// Times are not in the model of the disk: all files have the same one, and no file is older than
// another one only because it was written here first.
void write_tree(const Tree& tree, const fs::path& folder) {
  constexpr timespec kTimes[] = {{.tv_sec = 1'767'225'600, .tv_nsec = 0},
                                 {.tv_sec = 1'767'225'600, .tv_nsec = 0}};
  fs::create_directories(folder);
  std::map<std::size_t, fs::path> written;
  walk(tree, [&](const std::string& name, std::size_t number) {
    const Node& node = tree.nodes[number];
    const fs::path path = folder / name;
    const auto [first, is_new] = written.emplace(number, path);
    if (node.kind == Node::Kind::folder) {
      fs::create_directories(path);
    } else if (!is_new) {
      fs::create_hard_link(first->second, path);
    } else if (node.kind == Node::Kind::symlink) {
      fs::create_symlink(node.bytes, path);
    } else {
      test::write_file(path, node.bytes);
    }
    ::utimensat(AT_FDCWD, path.c_str(), kTimes, AT_SYMLINK_NOFOLLOW);
  });
}

std::string listing(const Tree& tree) {
  std::string text;
  std::map<std::size_t, std::string> first;
  walk(tree, [&](const std::string& path, std::size_t number) {
    const Node& node = tree.nodes[number];
    const auto [known, is_new] = first.emplace(number, path);
    if (!is_new) {
      text += fmt::format("{} is {}\n", path, known->second);
    } else if (node.kind == Node::Kind::folder) {
      text += path + "/\n";
    } else if (node.kind == Node::Kind::symlink) {
      text += fmt::format("{} -> {}\n", path, node.bytes);
    } else {
      const Digest128 sum = digest(node.bytes);
      text += fmt::format("{} {} {:02x}\n", path, node.bytes.size(), fmt::join(sum.bytes, ""));
    }
  });
  return text;
}

std::uint64_t hash(const Tree& tree) {
  return std::hash<std::string>{}(listing(tree));
}

}  // namespace thalia::crash
