// thalia store verify and thalia store repair: what is wrong with a run; the second one repairs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/store/store_arguments.h"
#include "thalia/store/repair.h"
#include "thalia/verify.h"

namespace thalia::cli {
namespace {

struct CheckArguments {
  std::string run;
  std::string phase;
  bool quick = false;
  bool repair = false;
};

void print_findings(Output& out, const CheckArguments& arguments, const StoreReport& report,
                    bool can_fix, double seconds) {
  for (const StoreFinding& finding : report.findings) {
    const bool is_error = finding.severity == Severity::error;
    out.print("{}: ", escape(finding.path.string()));
    out.write(is_error ? Style::error : Style::warning, severity_name(finding.severity));
    const char* repaired = "";
    if (finding.is_repaired) {
      repaired = "; repaired";
    } else if (arguments.repair) {
      repaired = "; not repaired";
    } else if (can_fix && finding.can_be_repaired) {
      repaired = "; can be repaired";
    }
    out.print(": {}: {}{}\n", finding.kind, escape(finding.message), repaired);
  }
  if (!report.ok()) return;
  out.print("{}: ok: {}, {} checked in {:.2f} s\n", escape(arguments.run),
            counted(report.checkpoints, "checkpoint", "checkpoints"),
            human_bytes(report.bytes_checked), seconds);
}

void print_findings_json(Output& out, const char* schema, const CheckArguments& arguments,
                         const StoreReport& report, const Warnings& warnings, double seconds) {
  print_object(out, schema, [&](JsonWriter& json) {
    json.member("path", as_utf8(arguments.run));
    json.member("ok", report.ok());
    json.member("checkpoint_count", report.checkpoints);
    json.member("bytes_checked", report.bytes_checked).member("seconds", seconds);
    json.key("findings").begin_array();
    for (const StoreFinding& finding : report.findings) {
      json.begin_object().member("severity", severity_name(finding.severity));
      json.member("kind", finding.kind).member("path", as_utf8(finding.path.string()));
      json.member("message", as_utf8(finding.message));
      json.member("can_be_repaired", finding.can_be_repaired);
      json.member("repaired", finding.is_repaired).end_object();
    }
    json.end_array();
    warnings.add_to(json);
  });
}

// What went when the run was opened to be changed, before anybody looked: it was repaired, too.
void add_swept(StoreReport& report, const StoreReport& before) {
  std::vector<StoreFinding> swept;
  for (const StoreFinding& was : before.findings) {
    const bool is_reported = std::ranges::any_of(report.findings, [&](const StoreFinding& finding) {
      return finding.kind == was.kind && finding.path == was.path;
    });
    if (is_reported || !was.can_be_repaired) continue;
    swept.push_back(was);
    swept.back().is_repaired = true;
  }
  report.findings.insert(report.findings.begin(), swept.begin(), swept.end());
}

StoreReport check(const CheckArguments& arguments, const Session& session, Warnings& warnings) {
  ProgressBar bar("verifying " + arguments.run);
  auto options = session.options<StoreCheckOptions>();
  options.phase = arguments.phase;
  options.quick = arguments.quick;
  options.work.progress = bar.callback();
  StoreReport report;
  if (arguments.repair) {
    auto quick = session.options<StoreCheckOptions>();
    quick.phase = arguments.phase;
    quick.quick = true;
    const StoreReport before =
        verify_run(thalia::Run::open(arguments.run, session.access()), quick);
    RunWriter writer = writer_of(arguments.run, session, warnings);
    report = repair_run(writer, options);
    add_swept(report, before);
  } else {
    report = verify_run(thalia::Run::open(arguments.run, session.access()), options);
  }
  bar.finish();
  return report;
}

int run_check(const char* schema, bool can_fix, const CheckArguments& arguments,
              const Session& session) {
  const Stopwatch watch;
  Warnings warnings(session);
  const StoreReport report = check(arguments, session, warnings);
  session.common.json
      ? print_findings_json(session.out, schema, arguments, report, warnings, watch.seconds())
      : print_findings(session.out, arguments, report, can_fix, watch.seconds());
  return report.ok() ? kDone : kFailed;
}

std::shared_ptr<CheckArguments> declare_check(CLI::App& app) {
  auto arguments = std::make_shared<CheckArguments>();
  add_run(app, arguments->run);
  add_phase(app, arguments->phase, "This phase alone, without gates and pool");
  add_quick(app, arguments->quick);
  return arguments;
}

}  // namespace

Run declare_store_verify(CLI::App& app) {
  app.description(
      "Reads every checkpoint, gate and version of the pool: digests, what the files say of "
      "themselves, and what deltas are based on. Prints every finding on a line of its own, and "
      "changes nothing. Exit status 1 where one is an error.");
  const auto arguments = declare_check(app);
  return [arguments](const Session& session) {
    return run_check("thalia.store.verify.1", false, *arguments, session);
  };
}

Run declare_store_repair(CLI::App& app) {
  app.description(
      "Finds what 'store verify' does, and repairs what can be repaired without a loss: temporary "
      "files and digests without a file go, links that lead nowhere are led to what there is, and "
      "digests that are missing are made for files that are sound. What is damaged stays as it "
      "is. Exit status 1 where an error is left.");
  const auto arguments = declare_check(app);
  auto dry_run = std::make_shared<bool>(false);
  add_dry_run(app, *dry_run);
  return [arguments, dry_run](const Session& session) {
    arguments->repair = !*dry_run;
    return run_check("thalia.store.repair.1", true, *arguments, session);
  };
}

}  // namespace thalia::cli
