#include "cli/command/edited.h"

#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/terminal/escape.h"

namespace thalia::cli {

void print_edit(const Session& session, std::string_view schema, const std::string& file,
                std::string_view what, const EditFileResult& result) {
  const AppendResult& append = result.append;
  if (session.common.json) {
    print_object(session.out, schema, [&](JsonWriter& json) {
      json.member("path", as_utf8(file));
      add_list(json, what, result.changed);
      add_append(json, append);
    });
    return;
  }
  session.out.print("{}: {} {}; {} appended, {} dead, generation {}, in {:.2f} s\n", escape(file),
                    result.changed.size(), what, human_bytes(append.appended_bytes),
                    human_bytes(append.dead_bytes), append.generation, append.seconds);
  for (const std::string& name : result.changed) session.out.print("  {}\n", escape_name(name));
}

}  // namespace thalia::cli
