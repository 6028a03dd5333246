// The generated tables of docs/cost-model.md.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/source_tree.h"

namespace daydream {

// Compares the block of the page whose mark names `what` ("costmodel_accuracy_test kernels"), or
// writes it where DD_UPDATE_DOCS is set.
inline void CheckCostPage(const std::string& what, const std::string& block) {
  const std::string path = DAYDREAM_SOURCE_DIR "/docs/cost-model.md";
  const std::string begin = "<!-- generated: DD_UPDATE_DOCS=1 " + what + " -->\n";
  const std::string page = ReadText(path);
  const size_t from = page.find(begin), to = page.find("<!-- end -->\n", from);
  ASSERT_NE(from, std::string::npos) << what;
  ASSERT_NE(to, std::string::npos) << what;
  const std::string fresh = page.substr(0, from + begin.size()) + block + page.substr(to);
  if (std::getenv("DD_UPDATE_DOCS") != nullptr) {
    std::ofstream(path, std::ios::binary) << fresh;
  } else {
    EXPECT_EQ(page.substr(from + begin.size(), to - from - begin.size()), block)
        << "DD_UPDATE_DOCS=1 renews it";
  }
}

}  // namespace daydream
