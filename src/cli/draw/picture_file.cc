#include "cli/draw/picture_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <span>

#include "cli/terminal/child_process.h"
#include "cli/terminal/escape.h"
#include "cli/terminal/output_file.h"
#include "thalia/error.h"
#include "thalia/text.h"

namespace thalia::cli {
namespace {

constexpr const char* kRenderer = "rsvg-convert";

ChildResult rendered(const std::string& path, const std::string& svg, const Session& session) {
  try {
    return run_child({kRenderer, "--format=png", "--zoom=2", "--background-color=white"}, svg,
                     session.stop);
  } catch (const IoError& error) {
    if (error.errno_value() != ENOENT) throw;
    throw UnsupportedError(
        ErrorCode::unsupported_feature,
        fmt::format("PNG is drawn by {}, which is not there: install Debian's package "
                    "librsvg2-bin, or write a name that ends in .svg",
                    kRenderer),
        {.path = path});
  }
}

std::string png_of(const std::string& path, const std::string& svg, const Session& session) {
  ChildResult result = rendered(path, svg, session);
  if (result.status == 0) return std::move(result.out);
  const std::string said = result.errors.substr(0, result.errors.find_last_not_of('\n') + 1);
  throw Error(ErrorCode::io,
              fmt::format("{} ended with status {}: {}", kRenderer, result.status,
                          said.empty() ? "it said nothing" : printable(said)),
              {.path = path});
}

}  // namespace

void write_picture(const std::string& path, const Session& session,
                   const std::function<std::string()>& draw) {
  const bool is_png = path.ends_with(".png");
  if (!is_png && !path.ends_with(".svg")) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--output",
                      .value = fmt::format("'{}'", escape(path)),
                      .bound = "a name that ends in .svg or .png"});
  }
  print_into(path, session, [&](Output& out) {
    const std::string svg = draw();
    if (!is_png) return out.write(svg);
    const std::string png = png_of(path, svg, session);
    out.write(std::as_bytes(std::span(png)));
  });
}

}  // namespace thalia::cli
