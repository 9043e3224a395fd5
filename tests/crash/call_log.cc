#include "crash/call_log.h"

#include <cstring>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "support/files.h"

namespace thalia::crash {
namespace {

class Reading {
 public:
  Reading(Tree before, std::string text) : text_(std::move(text)) {
    log_.before = std::move(before);
    nodes_ = log_.before.inodes;
  }

  CallLog run() {
    for (std::string_view rest = text_; !rest.empty(); ++log_.places) {
      Record record;
      std::memcpy(&record, rest.data(), sizeof record);
      rest.remove_prefix(sizeof record);
      const auto take = [&](std::uint64_t bytes) {
        const std::string_view taken = rest.substr(0, bytes);
        rest.remove_prefix(bytes);
        return std::string(taken);
      };
      Call call{.kind = record.kind, .data_only = record.data_only != 0};
      call.begin = call.end = log_.places;
      call.name = take(record.name_bytes);
      call.other_name = take(record.other_name_bytes);
      call.bytes = take(record.bytes);
      call.offset = record.offset;
      call.length = record.length;
      add(record, std::move(call));
    }
    // A failed write may have changed anything up to where it ended, and is never known to be done.
    for (Call& call : log_.calls)
      if (call.behind != kNone && log_.calls[call.behind].end == kNever) call.behind = kNone;
    return std::move(log_);
  }

 private:
  std::size_t node_of(std::uint64_t inode) {
    const auto found = nodes_.find(inode);
    if (found == nodes_.end()) throw std::runtime_error("the log names a file that nobody made");
    return found->second;
  }

  std::size_t make_node(std::uint64_t inode, Node::Kind kind, std::string bytes = {}) {
    log_.before.nodes.push_back({kind, std::move(bytes), {}});
    // A file that is gone may have left its number to this one.
    nodes_[inode] = log_.before.nodes.size() - 1;
    return log_.before.nodes.size() - 1;
  }

  void add(const Record& record, Call call) {
    if (call.kind == Kind::complete) return complete(record);
    if (call.kind == Kind::struck) {
      log_.struck = call.name;
      return;
    }
    if (call.kind == Kind::unknown)
      throw std::runtime_error("the recorder could not follow: " + call.name);
    switch (call.kind) {
      case Kind::make_file:
        call.node = make_node(record.inode, Node::Kind::file);
        break;
      case Kind::make_folder:
        call.node = make_node(record.inode, Node::Kind::folder);
        break;
      case Kind::make_symlink:
        call.node = make_node(record.inode, Node::Kind::symlink, std::exchange(call.bytes, {}));
        break;
      case Kind::submit_write:
      case Kind::submit_sync:
        call.kind = call.kind == Kind::submit_write ? Kind::write : Kind::sync;
        call.end = kNever;
        operations_[record.operation] = log_.calls.size();
        if (record.other_operation != 0) call.behind = operations_.at(record.other_operation);
        call.node = node_of(record.inode);
        break;
      default:
        if (record.inode != 0) call.node = node_of(record.inode);
    }
    if (record.folder != 0) call.folder = node_of(record.folder);
    if (record.other_folder != 0) call.other_folder = node_of(record.other_folder);
    log_.calls.push_back(std::move(call));
  }

  void complete(const Record& record) {
    Call& call = log_.calls[operations_.at(record.operation)];
    if (record.result < 0) return;
    if (call.kind == Kind::write) call.bytes.resize(static_cast<std::size_t>(record.result));
    call.end = log_.places;
  }

  std::string text_;
  CallLog log_;
  std::map<std::uint64_t, std::size_t> nodes_;       ///< by inode, as it is now
  std::map<std::uint64_t, std::size_t> operations_;  ///< calls by a ring's operation
};

}  // namespace

CallLog read_log(const std::filesystem::path& log, Tree before) {
  return Reading(std::move(before), test::read_file(log)).run();
}

void apply(Tree& tree, const Call& call) {
  const auto names = [&](std::size_t folder) -> auto& {
    return tree.nodes[folder].names;
  };
  switch (call.kind) {
    case Kind::make_file:
    case Kind::make_folder:
    case Kind::make_symlink:
    case Kind::link:
      if (call.folder != kNone) names(call.folder)[call.name] = call.node;
      break;
    case Kind::rename:
      names(call.folder).erase(call.name);
      names(call.other_folder)[call.other_name] = call.node;
      break;
    case Kind::unlink:
      names(call.folder).erase(call.name);
      break;
    case Kind::truncate:
      tree.nodes[call.node].bytes.resize(call.length);
      break;
    case Kind::allocate:
      if (tree.nodes[call.node].bytes.size() < call.length)
        tree.nodes[call.node].bytes.resize(call.length);
      break;
    case Kind::write: {
      std::string& bytes = tree.nodes[call.node].bytes;
      if (bytes.size() < call.offset + call.bytes.size())
        bytes.resize(call.offset + call.bytes.size());
      bytes.replace(call.offset, call.bytes.size(), call.bytes);
      break;
    }
    default:
      break;
  }
}

Tree played_back(const CallLog& log) {
  Tree tree = log.before;
  for (const Call& call : log.calls) apply(tree, call);
  return tree;
}

}  // namespace thalia::crash
