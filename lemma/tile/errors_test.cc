// Every mistake has its exact message: errors.golden holds tile programs and what is said of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "lemma/tile/parse.h"

namespace lemma::tile {
namespace {

TEST(Errors, say_what_where_and_what_would_mend_it) {
  const std::string path = std::string(LEMMA_SOURCE_DIR) + "/lemma/tile/errors.golden";
  std::ifstream file(path);
  ASSERT_TRUE(file.good());
  std::string line, out, program, expected;
  bool message = false;
  int cases = 0;
  const bool bless = std::getenv("LEMMA_BLESS") != nullptr;
  while (std::getline(file, line)) {
    if (program.empty() && !message && !line.empty() && line[0] == '#') {
      out += line + "\n";
    } else if (line == "----") {
      message = true;
    } else if (line == "====") {
      const auto parsed = parse(program, "program");
      const std::string found = parsed.ok() ? "no error\n" : base::render(parsed.error());
      EXPECT_FALSE(parsed.ok()) << program;
      if (!bless) {
        EXPECT_EQ(found, expected) << program;
      }
      out += program + "----\n" + found + "====\n";
      ++cases;
      program.clear();
      expected.clear();
      message = false;
    } else {
      (message ? expected : program) += line + "\n";
    }
  }
  EXPECT_GE(cases, 45);
  if (bless) std::ofstream(path) << out;
}

}  // namespace
}  // namespace lemma::tile
