// thalia store watch: a run's list, again whenever it changes. It looks at names and small texts,
// takes no lock and opens no checkpoint, so the training does not notice.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/complaint.h"
#include "cli/print/error_json.h"
#include "cli/print/json_result.h"
#include "cli/store/run_facts.h"
#include "cli/store/store_arguments.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

struct WatchArguments {
  std::string run;
  std::string phase;
  double interval = 2;
};

// False once a stop is requested.
bool sleep_for(double seconds, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  const auto span = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  never.wait_for(lock, stop, span, [] { return false; });
  return !stop.stop_requested();
}

std::size_t rows_of_screen() {
  winsize screen{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &screen) != 0 || screen.ws_row < 3) return 24;
  return screen.ws_row;
}

// In the place of what is there, without a moment in which nothing is. What does not fit above the
// last row is left out at the top, as the newest is below.
void redraw(Output& out, std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const std::size_t most = rows_of_screen() - 1;
  std::size_t first = lines.size() > most ? lines.size() - most : 0;
  const auto control = [&](std::string_view code) { out.write(as_byte_span(code)); };
  // A line that is too long is cut, and takes one row.
  control("\x1b[?7l\x1b[H");
  for (; first < lines.size(); ++first) {
    out.write(lines[first]);
    control("\x1b[K\n");
  }
  control("\x1b[J\x1b[?7h");
}

// What is shown of one look at the run.
class Frames {
 public:
  explicit Frames(const Session& session) : session_(session) {}

  void show(const RunFacts& facts) {
    const std::string state = state_of(facts);
    const bool is_new = state != shown_;
    if (session_.common.json) {
      if (is_new) session_.out.write(state);
    } else if (session_.out.is_terminal()) {
      // Also if nothing is new, as ages are.
      redraw(session_.out, text_of(facts));
    } else if (is_new) {
      session_.out.write((shown_.empty() ? "" : "\n") + text_of(facts));
    }
    shown_ = state;
    session_.out.flush();
  }

 private:
  std::string state_of(const RunFacts& facts) const {
    std::string state;
    Output out([&](std::string_view text) { state += text; });
    print_object(out, "thalia.store.watch.1", [&](JsonWriter& json) {
      json.key("run");
      add_run_facts(json, facts);
    });
    out.flush();
    return state;
  }

  std::string text_of(const RunFacts& facts) const {
    std::string text;
    Output out([&](std::string_view piece) { text += piece; });
    print_run(out, facts, seconds_since_1970());
    out.flush();
    return text;
  }

  const Session& session_;
  std::string shown_;
};

int run_watch(const WatchArguments& arguments, const Session& session) {
  check_interval(arguments.interval);
  const thalia::Run run = thalia::Run::open(arguments.run, session.access());
  // An unknown phase is a mistake, and not what is waited for.
  if (!arguments.phase.empty()) run.config().phase(arguments.phase);
  Frames frames(session);
  std::string reported;
  do {
    try {
      frames.show(run_facts_of(run, arguments.phase));
      reported.clear();
    } catch (const CancelledError&) {
      break;
    } catch (const Error& error) {
      // A disk that is away for a while may come back.
      if (reported != error.what()) complain_of(error, session.common.json, kUnreadable);
      reported = error.what();
    }
  } while (!session.out.closed() && sleep_for(arguments.interval, session.stop));
  return kDone;
}

}  // namespace

Run declare_store_watch(CLI::App& app) {
  app.description(
      "Shows what 'store list' does, and again whenever the run has changed, until it is ended by "
      "Ctrl-C. On a terminal in the place of what was shown before; else, and with --json, after "
      "it. It takes no lock and opens no checkpoint.");
  const auto arguments = std::make_shared<WatchArguments>();
  add_run(app, arguments->run);
  add_phase(app, arguments->phase, "This phase alone");
  add_interval(app, arguments->interval, "How often to look; default 2");
  return [arguments](const Session& session) { return run_watch(*arguments, session); };
}

}  // namespace thalia::cli
