// thalia store pool: earlier versions of a model, and who is played next.
#include "thalia/store/pool.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/store/run_facts.h"
#include "cli/store/store_arguments.h"
#include "cli/store/store_json.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

struct PoolArguments {
  std::string run;
  std::string action = "list";
  std::optional<std::uint64_t> version;
  std::string phase;
  std::optional<std::uint64_t> step;
  std::optional<double> mu, sigma;
  std::optional<std::uint64_t> games;
  std::optional<double> win_rate;
  std::optional<std::uint64_t> seed, index;
};

// Each action takes options of its own.
template <typename T>
T required(const PoolArguments& arguments, const char* option, const std::optional<T>& value) {
  if (value) return *value;
  throw UsageError(ErrorCode::bad_argument, fmt::format("store pool {} needs it", arguments.action),
                   {.field = option});
}

Rating rating_of(const PoolArguments& arguments) {
  return {.mu = required(arguments, "--mu", arguments.mu),
          .sigma = required(arguments, "--sigma", arguments.sigma)};
}

std::string member_text(const PoolMember& member) {
  return fmt::format("{}, step {} of {}, mu {}, sigma {}", escape(member.name),
                     grouped(member.step), escape(member.phase), measure_text(member.rating.mu),
                     measure_text(member.rating.sigma));
}

// The object of an action, with what it adds.
template <typename Fill>
int print_action(const PoolArguments& arguments, const Session& session, const Fill& fill) {
  print_object(session.out, "thalia.store.pool.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(arguments.run)).member("action", arguments.action);
    fill(json);
  });
  return kDone;
}

int list_pool(const PoolArguments& arguments, const Session& session) {
  const PoolView pool = read_pool(thalia::Run::open(arguments.run, session.access()));
  if (!session.common.json) {
    print_pool(session.out, pool, seconds_since_1970());
    return kDone;
  }
  return print_action(arguments, session, [&](JsonWriter& json) {
    json.key("pool");
    add_pool(json, pool);
  });
}

int add_version(const PoolArguments& arguments, const Session& session) {
  const Rating rating = rating_of(arguments);
  const std::uint64_t step = required(arguments, "--step", arguments.step);
  Warnings warnings(session);
  RunWriter writer = writer_of(arguments.run, session, warnings);
  Pool pool(writer);
  const PoolAddResult added = pool.add(chosen_phase(writer.run(), arguments.phase), step, rating);
  if (session.common.json) {
    return print_action(arguments, session, [&](JsonWriter& json) {
      json.key("member");
      add_pool_member(json, added.member);
      add_list(json, "evicted", added.evicted);
      warnings.add_to(json);
    });
  }
  session.out.print("version {}: {}, {}\n", added.member.version, member_text(added.member),
                    human_bytes(added.member.bytes));
  for (const std::string& file : added.evicted) session.out.print("evicted: {}\n", escape(file));
  return kDone;
}

int rate_version(const PoolArguments& arguments, const Session& session) {
  const std::uint64_t version = required(arguments, "VERSION", arguments.version);
  const Rating rating = rating_of(arguments);
  const std::uint64_t games = required(arguments, "--games", arguments.games);
  const double win_rate = required(arguments, "--win-rate", arguments.win_rate);
  Warnings warnings(session);
  RunWriter writer = writer_of(arguments.run, session, warnings);
  Pool pool(writer);
  const PoolMember member = pool.rate(version, rating, games, win_rate);
  if (session.common.json) {
    return print_action(arguments, session, [&](JsonWriter& json) {
      json.key("member");
      add_pool_member(json, member);
      warnings.add_to(json);
    });
  }
  session.out.print("version {}: {}, {}\n", member.version, member_text(member),
                    counted(member.games_played, "game", "games"));
  return kDone;
}

const char* kind_name(OpponentKind kind) {
  switch (kind) {
    case OpponentKind::self:
      return "self";
    case OpponentKind::pool:
      return "pool";
    case OpponentKind::baseline:
      break;
  }
  return "baseline";
}

int draw_version(const PoolArguments& arguments, const Session& session) {
  const std::uint64_t seed = required(arguments, "--seed", arguments.seed);
  const std::uint64_t index = required(arguments, "--index", arguments.index);
  const PoolDraw draw =
      draw_opponent(read_pool(thalia::Run::open(arguments.run, session.access())), seed, index);
  if (session.common.json) {
    return print_action(arguments, session, [&](JsonWriter& json) {
      json.member("kind", kind_name(draw.kind)).key("member");
      draw.member ? add_pool_member(json, *draw.member) : static_cast<void>(json.null());
    });
  }
  session.out.print("{}{}\n", kind_name(draw.kind),
                    draw.member ? ": " + escape(draw.member->path.string()) : "");
  return kDone;
}

struct Action {
  std::string_view name;
  int (*value)(const PoolArguments& arguments, const Session& session);
};
constexpr std::array kActions{Action{"list", list_pool}, Action{"add", add_version},
                              Action{"rate", rate_version}, Action{"draw", draw_version}};

int run_pool(const PoolArguments& arguments, const Session& session) {
  for (const Action& action : kActions)
    if (action.name == arguments.action) return action.value(arguments, session);
  throw UsageError(ErrorCode::bad_argument, {},
                   {.field = "ACTION",
                    .value = fmt::format("'{}'", escape(arguments.action)),
                    .bound = choice_names(kActions, ", ")});
}

}  // namespace

Run declare_store_pool(CLI::App& app) {
  app.description(
      "The pool of a run: earlier versions of the model, stripped to what inference needs, and "
      "gates "
      "as its anchors. list shows them; add makes a checkpoint the next version, and the oldest "
      "beyond what the configuration keeps go; rate notes what games have shown of VERSION; draw "
      "says who is played in game I: the same for one seed and one pool, on every machine.");
  app.footer(
      "Examples:\n  thalia store pool runs/a\n"
      "  thalia store pool runs/a add --step 120000 --mu 27.1 --sigma 1.4\n"
      "  thalia store pool runs/a rate 3 --mu 26 --sigma 1.2 --games 40 --win-rate 0.55\n"
      "  thalia store pool runs/a draw --seed 7 --index 12");
  const auto arguments = std::make_shared<PoolArguments>();
  add_run(app, arguments->run);
  offer(app.add_option("ACTION", arguments->action, "What to do; default list"),
        choice_names(kActions, "|"));
  app.add_option("VERSION", arguments->version, "For rate: the number of the version");
  add_phase(app, arguments->phase,
            "For add: its phase; default the last one that has a checkpoint");
  add_step(app, arguments->step, "For add: the checkpoint's step");
  add_rating(app, arguments->mu, arguments->sigma);
  add_option(app, "--games N", arguments->games, "For rate: games that it has played");
  add_option(app, "--win-rate X", arguments->win_rate, "For rate: the share that it won, 0 to 1");
  add_master_seed(app, arguments->seed, "For draw: the run's seed");
  add_option(app, "--index I", arguments->index, "For draw: the number of the game");
  return [arguments](const Session& session) { return run_pool(*arguments, session); };
}

}  // namespace thalia::cli
