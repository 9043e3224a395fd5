// thalia verify: every finding of every file, one line each. A file that cannot be examined does
// not keep the others from being checked; the status is the worst of all. Limits and cancelling are
// not findings, since they say nothing about the file, and are thrown on.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/error_json.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/print/verify_text.h"
#include "cli/terminal/escape.h"
#include "json/writer.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/file_facts.h"
#include "thalia/state/delta.h"
#include "thalia/verify.h"

namespace thalia::cli {
namespace {

struct VerifyArguments {
  std::vector<std::string> files;
  bool quick = false;
  bool resolve = false;
};

void print_text(Output& out, const std::string& path, const VerifyReport& report, bool quick) {
  for (const Finding& finding : report.findings) {
    const bool is_error = finding.severity == Severity::error;
    out.print("{}: ", escape(path));
    out.write(is_error ? Style::error : Style::warning, severity_name(finding.severity));
    out.print(": {}: {}\n", finding_place(finding), escape(finding.message));
  }
  if (report.suppressed > 0)
    out.print("{}: {}\n", escape(path),
              counted(report.suppressed, "more finding", "more findings"));
  if (!report.ok()) return;
  out.print("{}: ok: {}, {}\n", escape(path), counted(report.tensors, "tensor", "tensors"),
            what_was_checked(report, quick, true));
}

// If a file could not be examined, `error` says why, and `report` is empty.
void add_json(JsonWriter& json, const std::string& path, std::optional<FileFormat> format,
              const VerifyReport& report, const std::exception* error) {
  json.begin_object().member("path", as_utf8(path)).key("format");
  format ? json.value(file_format_name(*format)) : json.null();
  json.member("ok", error == nullptr && report.ok()).member("region_count", report.regions);
  json.member("tensor_count", report.tensors).member("structure_only", report.structure_only());
  json.member("tensors_compared", report.tensors_compared);
  json.member("bytes_checked", report.bytes_checked).member("seconds", report.seconds).key("error");
  error != nullptr ? add_error(json, *error) : static_cast<void>(json.null());
  json.member("suppressed", report.suppressed).key("findings").begin_array();
  for (const Finding& finding : report.findings) {
    json.begin_object().member("severity", severity_name(finding.severity));
    json.member("code", error_code_name(finding.code));
    json.member("section", finding.section).member("field", finding.field);
    json.member("region", as_utf8(finding.region));
    json.member("tensor", as_utf8(finding.tensor)).member("offset", finding.offset);
    json.member("length", finding.length).member("message", as_utf8(finding.message)).end_object();
  }
  json.end_array().end_object();
}

int run_verify(const VerifyArguments& arguments, const Session& session) {
  int status = kDone;
  std::string text;
  JsonWriter json(text);
  if (session.common.json)
    json.begin_object().member("schema", "thalia.verify.1").key("files").begin_array();
  for (const std::string& path : arguments.files) {
    std::optional<FileFormat> known;
    try {
      ProgressBar bar("verifying " + path);
      auto options = session.options<VerifyOptions>();
      options.quick = arguments.quick;
      options.work.progress = bar.callback();
      const VerifyReport report =
          verify_any(path, options, session.options<OpenOptions>(), std::nullopt, arguments.resolve,
                     [&](FileFormat format) { known = format; });
      if (!report.ok()) status = std::max<int>(status, kFailed);
      bar.finish();
      if (session.common.json) {
        add_json(json, path, known, report, nullptr);
      } else {
        print_text(session.out, path, report, arguments.quick);
      }
    } catch (const CancelledError&) {
      throw;
    } catch (const std::exception& error) {
      // The other files are still worth a look.
      status = complain_of(error, session.common.json, kUnreadable);
      if (session.common.json) add_json(json, path, known, {}, &error);
    }
  }
  if (session.common.json) {
    json.end_array().end_object();
    session.out.write(text + "\n");
  }
  return status;
}

}  // namespace

Run declare_verify(CLI::App& app) {
  app.description(
      "Checks structure, padding, checksums, every tensor's CRC-32 and content hash, names, JSON "
      "and sparse indices, and prints every finding on a line of its own. Files of other formats: "
      "their structure, and the checksums that they have; most have none, and then the result says "
      "'structure only'. Exit status 1 where a finding is an error; warnings alone are no "
      "failure.");
  const auto arguments = std::make_shared<VerifyArguments>();
  add_file(app, "FILE", arguments->files, "The files to check");
  app.add_flag("--quick", arguments->quick, "Structure only: no payload is read");
  app.add_flag("--resolve", arguments->resolve,
               "For a delta, also all that it is based on, and each tensor that comes out");
  return [arguments](const Session& session) { return run_verify(*arguments, session); };
}

}  // namespace thalia::cli
