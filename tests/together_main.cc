// Where several tests are one program: --only NAME runs those of NAME.cc, as a program of its own
// would.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace {

// The filter that keeps, of what `given` keeps, the tests of the file; empty when there are none.
std::string FilterOf(std::string_view file, const std::string& given) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (std::filesystem::path(test.file()).stem() != file) continue;
      filter += (filter.empty() ? "" : ":") + std::string(suite.name()) + "." + test.name();
    }
  }
  return filter.empty() || !given.starts_with('-') ? filter : filter + given;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc >= 3 && std::string_view(argv[1]) == "--only") {
    const std::string filter = FilterOf(argv[2], testing::GTEST_FLAG(filter));
    if (filter.empty()) {
      std::fprintf(stderr, "%s has no tests of %s.cc\n", argv[0], argv[2]);
      return 1;
    }
    testing::GTEST_FLAG(filter) = filter;
  }
  return RUN_ALL_TESTS();
}
