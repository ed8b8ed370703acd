// What a subcommand of tern answers: the same facts for programs and for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tern::tools {

struct Report {
  nlohmann::ordered_json data;
  std::string text;  ///< whole lines
};

}  // namespace tern::tools
