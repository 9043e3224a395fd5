// Says of each file whose path is on a line of FOLDER/paths what verify() makes of it: "sound",
// or "broken" and the first error. For comparison with the witness.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>

#include "parts.h"
#include "thalia/error.h"
#include "thalia/verify.h"

namespace witness::verdicts {

using namespace thalia;

namespace {

std::string verdict(const std::string& path) {
  try {
    thalia::VerifyOptions options;
    options.work.threads = 1;
    const thalia::VerifyReport report = thalia::verify(path, options);
    const auto error = std::find_if(
        report.findings.begin(), report.findings.end(),
        [](const auto& finding) { return finding.severity == thalia::Severity::error; });
    if (error == report.findings.end()) return "sound";
    return "broken\t" + error->section + ": " + error->message;
  } catch (const thalia::Error& error) {
    return std::string("broken\t") + error.what();
  }
}

}  // namespace

void run(const std::filesystem::path& folder) {
  std::ifstream paths(folder / "paths");
  for (std::string path; std::getline(paths, path);) std::cout << verdict(path) << '\n';
}

}  // namespace witness::verdicts
