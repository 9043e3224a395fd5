#include "cli/terminal/session.h"

#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "boost_test.h"
#include "support/files.h"
#include "thalia/formats.h"
#include "thalia/state.h"
#include "thalia/thalia.h"

using namespace thalia;
using namespace thalia::cli;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(session)

namespace {

void save(const fs::path& path, float first, Codec compression) {
  std::vector<float> weights(64 * 64, first);
  SaveOptions options;
  options.output.durability = Durability::none;
  options.compression.codec = compression;
  Writer writer(path, options);
  const RegionId region = writer.add_region({.name = "r", .n_neurons = 64});
  writer.add_tensor(region, {.name = "w", .shape = {64, 64}}, as_byte_span(weights));
  writer.commit();
}

struct Call {
  const char* name;
  std::function<void(const Session& session, const fs::path& in, const fs::path& out)> run;
};

void convert_to(const Session& session, const fs::path& in, fs::path out, const char* ending) {
  convert(in, out += ending, session.options<ConvertOptions>());
}

// What a command does with a file, one way each.
const std::vector<Call>& calls() {
  static const std::vector<Call> all{
      {"verify", [](auto& s, auto& in, auto&) { verify(in, s.template options<VerifyOptions>()); }},
      {"read",
       [](auto& s, auto& in, auto&) {
         Reader::open(in, s.template options<ReadOptions>()).tensor("w").bytes();
       }},
      {"chain",
       [](auto& s, auto& in, auto&) {
         const auto chain = ChainReader::open(in, s.template options<ChainOptions>());
         chain.read(chain.reader().tensor("w"));
       }},
      {"to thalia", [](auto& s, auto& in, auto& out) { convert_to(s, in, out, ".thalia"); }},
      {"to safetensors",
       [](auto& s, auto& in, auto& out) { convert_to(s, in, out, ".safetensors"); }},
      {"to mckp", [](auto& s, auto& in, auto& out) { convert_to(s, in, out, ".mckp"); }},
      {"to a side file", [](auto& s, auto& in, auto& out) { convert_to(s, in, out, ".meta"); }},
      {"extract", [](auto& s, auto& in,
                     auto& out) { extract(in, {"r"}, out, s.template options<ConvertOptions>()); }},
      {"merge",
       [](auto& s, auto& in, auto& out) {
         merge({in, in}, out, {}, s.template options<ConvertOptions>());
       }},
      {"migrate",
       [](auto& s, auto& in, auto& out) {
         auto options = s.template options<MigrateOptions>();
         options.across_major = true;
         migrate(in, out, {0, 1}, options);
       }},
      {"resolve",
       [](auto& s, auto& in, auto& out) {
         resolve(in, out, s.template options<ChainOptions>(), s.template options<SaveOptions>());
       }},
      {"delta",
       [](auto& s, auto& in, auto& out) {
         const ChainReader base = ChainReader::open(in);
         write_delta(state_source(base), base, out, s.template options<DeltaOptions>());
       }},
      {"quantize",
       [](auto& s, auto& in, auto& out) {
         quantize_file(in, out, {.min_elements = 1}, s.template options<QuantizeFileOptions>());
       }},
      {"compress",
       [](auto& s, auto& in, auto& out) {
         auto options = s.template options<CompressOptions>();
         options.compression.codec = Codec::zstd;
         compress_checkpoint(in, out, options);
       }},
      {"compact",
       [](auto& s, auto& in, auto& out) { compact(in, out, s.template options<ChangeOptions>()); }},
      {"recover",
       [](auto& s, auto& in, auto&) { recover(in, s.template options<RecoverOptions>()); }},
      {"append",
       [](auto& s, auto& in, auto&) {
         Appender appender(in, s.template options<AppendOptions>());
         appender.set_metadata("{\"a\":1}");
         appender.commit();
       }},
      {"grow",
       [](auto& s, auto& in, auto&) {
         grow_file(in, "r", 1, {.axes = {{"weights.w", {"neurons", "neurons"}}}},
                   s.template options<AppendOptions>());
       }},
      {"diff",
       [](auto& s, auto& in, auto&) {
         const Reader reader = Reader::open(in, s.template options<ReadOptions>());
         auto options = s.template options<DiffOptions>();
         options.values = true;
         diff(reader, reader, options);
       }},
      {"output",
       [](auto& s, auto&, auto& out) {
         OutputFile file(out, {.replace = s.common.replace}, s.stop);
         file.write(ByteSpan());
         file.commit();
       }},
  };
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_call_ends_when_a_stop_is_requested) {
  std::stop_source stop;
  stop.request_stop();
  Output out(-1);
  const Session session{.out = out, .stop = stop.get_token()};
  for (const Codec compression : {Codec::none, Codec::zstd}) {
    for (const Call& call : calls()) {
      BOOST_TEST_CONTEXT(call.name) {
        const test::TemporaryFolder folder;
        save(folder / "in.thalia", 1, compression);
        const std::string before = test::read_file(folder / "in.thalia");
        BOOST_CHECK_THROW(call.run(session, folder / "in.thalia", folder / "out"), CancelledError);
        BOOST_TEST(test::list_folder(folder.path()) == std::vector<std::string>{"in.thalia"},
                   boost::test_tools::per_element());
        BOOST_TEST((test::read_file(folder / "in.thalia") == before));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(calls_do_their_work_where_none_is) {
  Output out(-1);
  const Session session{.out = out, .stop = {}};
  for (const Call& call : calls()) {
    BOOST_TEST_CONTEXT(call.name) {
      const test::TemporaryFolder folder;
      save(folder / "in.thalia", 1, Codec::none);
      BOOST_CHECK_NO_THROW(call.run(session, folder / "in.thalia", folder / "out"));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_output_stays_unless_it_is_to_be_replaced) {
  Output out(-1);
  const Session replacing{.out = out, .stop = {}};
  const Session careful{.out = out, .stop = {}, .common = {.replace = false}};
  unsigned writing = 0;
  for (const Call& call : calls()) {
    BOOST_TEST_CONTEXT(call.name) {
      const test::TemporaryFolder folder;
      save(folder / "in.thalia", 1, Codec::none);
      call.run(careful, folder / "in.thalia", folder / "out");
      auto names = test::list_folder(folder.path());
      std::erase(names, "in.thalia");
      // Those that read, or change a file in place, make none.
      if (names.empty()) continue;
      ++writing;
      BOOST_TEST_REQUIRE(names.size() == 1u);
      test::write_file(folder / names[0], "precious");
      BOOST_CHECK_EXCEPTION(
          call.run(careful, folder / "in.thalia", folder / "out"), UsageError,
          [](const UsageError& error) { return error.code() == ErrorCode::exists; });
      BOOST_TEST(test::read_file(folder / names[0]) == "precious");
      BOOST_TEST(test::list_folder(folder.path()).size() == 2u);
      call.run(replacing, folder / "in.thalia", folder / "out");
      BOOST_TEST(test::read_file(folder / names[0]) != "precious");
    }
  }
  BOOST_TEST(writing == 13u);
}

// In a reproducible save, nothing is left of when and where it ran.
BOOST_AUTO_TEST_CASE(equal_input_gives_equal_bytes_where_that_is_asked_for) {
  Output out(-1);
  const Session session{.out = out, .stop = {}, .common = {.reproducible = true}};
  for (const Call& call : calls()) {
    BOOST_TEST_CONTEXT(call.name) {
      std::map<std::string, std::string> first;
      for (int round = 0; round < 2; ++round) {
        const test::TemporaryFolder folder;
        Writer writer(folder / "in.thalia",
                      {.output = {.durability = Durability::none, .reproducible = true}});
        const std::vector<float> weights(64 * 64, 1);
        const RegionId region = writer.add_region({.name = "r", .n_neurons = 64});
        writer.add_tensor(region, {.name = "w", .shape = {64, 64}}, as_byte_span(weights));
        writer.commit();
        call.run(session, folder / "in.thalia", folder / "out");
        for (const std::string& name : test::list_folder(folder.path())) {
          const std::string bytes = test::read_file(folder / name);
          if (round == 0)
            first[name] = bytes;
          else
            BOOST_TEST((first.at(name) == bytes), name);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(options_are_told_what_all_commands_are_told) {
  Output out(-1);
  const Session session{.out = out,
                        .stop = {},
                        .common = {.safe = true, .search = {"a", "b"}, .threads = 3, .wait = true}};
  BOOST_TEST((session.options<ReadOptions>().input.access == Access::copied));
  BOOST_TEST((session.options<VerifyOptions>().input.access == Access::copied));
  BOOST_TEST((session.options<ConvertOptions>().chain.read.input.access == Access::copied));
  const auto chain = session.options<ChainOptions>();
  BOOST_TEST((chain.read.input.access == Access::copied));
  BOOST_TEST(chain.read.work.threads == 3);
  BOOST_TEST(session.options<ConvertOptions>().save.work.threads == 3);
  BOOST_TEST(session.options<AppendOptions>().change.wait);
  BOOST_TEST((chain.search == std::vector<fs::path>{"a", "b"}));
}

BOOST_AUTO_TEST_SUITE_END()
