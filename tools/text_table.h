// Columns of text, aligned.
#pragma once

#include <string>
#include <vector>

namespace tern::tools {

/// Rows of cells; the first row is the head. Columns whose cells below the head all start with a digit, a
/// sign or "-" are right aligned. Every line ends in a newline and has no blanks before it.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tern::tools
