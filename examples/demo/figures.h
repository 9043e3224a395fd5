// What the steps of a tour measured, each in a process of its own, for the table at the end.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace demo {

/// A text file of lines "name value".
class Figures {
 public:
  /// An empty path: figures are not kept.
  explicit Figures(std::filesystem::path path) : path_(std::move(path)) {}

  /// Appends a line. @throws std::runtime_error.
  void add(const std::string& name, double value) const;
  /// All that was added, by whichever process. @throws std::runtime_error.
  std::map<std::string, double> read() const;

 private:
  std::filesystem::path path_;
};

}  // namespace demo
