// What every benchmark program does: environment, Google Benchmarks, paired comparisons. The
// environment is printed first, so that no figure is shown without it.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "environment.h"
#include "paired.h"
#include "settings.h"
#include "subject.h"

namespace thalia::bench {
namespace {

int run(std::vector<std::string> arguments, AddSubject& add) {
  const std::string program = arguments.front();
  arguments.erase(arguments.begin());
  for (const std::string& argument : arguments) {
    if (argument == "--help") {
      std::printf("usage: %s [OPTION...]\n%s", program.c_str(), kSettingsHelp);
      return 0;
    }
  }
  const Settings settings = take_settings(arguments);
  if (settings.smoke) arguments.push_back("--benchmark_min_time=0.001");

  std::vector<char*> passed_on{const_cast<char*>(program.c_str())};
  for (std::string& argument : arguments) passed_on.push_back(argument.data());
  int count = static_cast<int>(passed_on.size());
  benchmark::Initialize(&count, passed_on.data());
  if (benchmark::ReportUnrecognizedArguments(count, passed_on.data())) return 2;

  const Facts facts = environment(settings);
  for (const auto& [key, value] : facts) std::printf("%s: %s\n", key.c_str(), value.c_str());
  if (const std::string why = build_warning(); !why.empty())
    std::printf("WARNING: these figures mean nothing: %s\n", why.c_str());

  PairedSuite suite;
  if (add(settings, suite)) benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  suite.run(settings, facts);
  return 0;
}

}  // namespace

int run_subject(int argc, char** argv, AddSubject& add) {
  try {
    return run({argv, argv + argc}, add);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

}  // namespace thalia::bench
