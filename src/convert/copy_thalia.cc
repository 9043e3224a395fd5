// Regions before connections: a connection is kept only if both of its regions were copied.
#include <string>

#include "convert/conversions.h"
#include "convert/thalia_copy.h"

namespace thalia::formats {

void copy_thalia(const Reader& reader, const std::vector<std::uint32_t>& regions,
                 const path& output, const ConvertOptions& options, ConvertResult& result) {
  ThaliaCopy copy(output, options, result);
  copy.set_metadata(std::string(reader.metadata_json()));
  copy.set_training_steps(reader.header().training_steps);
  for (const std::uint32_t i : regions) copy.copy_region(reader, i);
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i)
    copy.copy_connection(reader.connection(i));
  copy.finish();
  result.input_bytes = reader.file_bytes();
}

}  // namespace thalia::formats
