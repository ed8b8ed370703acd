#include "tools/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace tern::tools {
namespace {

struct Column {
  size_t width = 0;
  bool is_number = true;
};

bool starts_like_a_number(const std::string& cell) {
  return cell.empty() || std::string("0123456789-+.").find(cell[0]) != std::string::npos;
}

std::vector<Column> measure(const std::vector<std::vector<std::string>>& rows) {
  std::vector<Column> columns;
  for (size_t r = 0; r < rows.size(); ++r) {
    columns.resize(std::max(columns.size(), rows[r].size()));
    for (size_t c = 0; c < rows[r].size(); ++c) {
      columns[c].width = std::max(columns[c].width, rows[r][c].size());
      if (r > 0 && !starts_like_a_number(rows[r][c])) columns[c].is_number = false;
    }
  }
  return columns;
}

}  // namespace

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  const std::vector<Column> columns = measure(rows);
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += "  ";
      line += columns[c].is_number ? fmt::format("{:>{}}", row[c], columns[c].width)
                                   : fmt::format("{:<{}}", row[c], columns[c].width);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace tern::tools
