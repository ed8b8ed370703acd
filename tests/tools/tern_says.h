// Runs tern in this process.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/tern_program.h"

namespace tern::tools {

struct Ran {
  int status = -1;
  std::string out;
  std::string err;
};

inline Ran tern_says(std::vector<const char*> args) {
  args.insert(args.begin(), "tern");
  std::FILE* file = std::tmpfile();
  testing::internal::CaptureStderr();
  Ran ran;
  ran.status = run_tern(args, file);
  ran.err = testing::internal::GetCapturedStderr();
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) ran.out += static_cast<char>(c);
  std::fclose(file);
  return ran;
}

}  // namespace tern::tools
