// What the linker made of the program: hardened, and without a path of the machine that built it.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/cli_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;

class Binary : public CliFixture {
 protected:
  void SetUp() override {
    if (!DAYDREAM_HARDENED) GTEST_SKIP() << "not hardened: a debug build, sanitizers, or asked for";
    CliFixture::SetUp();
  }
  // The pages that `readelf` prints about the program.
  std::string Readelf(const std::string& options) const {
    return Shell("readelf -W " + options + " " DAYDREAM_BINARY).out;
  }
};

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++count;
  return count;
}

TEST_F(Binary, IsHardened) {
  const std::string headers = Readelf("-l");
  if (headers.empty()) GTEST_SKIP() << "there is no readelf";
  EXPECT_THAT(headers, HasSubstr("DYN ("));  // lies at another address in each run
  EXPECT_THAT(headers, testing::ContainsRegex("GNU_STACK +[0-9a-fx ]+ RW "));  // runs no data
  EXPECT_THAT(headers, HasSubstr("GNU_RELRO"));
  EXPECT_THAT(Readelf("-d"), HasSubstr("BIND_NOW"));
  const std::string symbols = Readelf("--dyn-syms");
  EXPECT_THAT(symbols, HasSubstr("__stack_chk_fail"));
  EXPECT_THAT(symbols, HasSubstr("_chk@"));  // fortified calls
#ifdef __x86_64__
  // Marks where a jump may go. Whether the processor checks them depends on the system's libraries.
  EXPECT_GT(Count(ReadAll(DAYDREAM_BINARY), "\xf3\x0f\x1e\xfa"), 1000u);
#endif
}

TEST_F(Binary, HoldsNoPathOfItsFolders) {
  const std::string bytes = ReadAll(DAYDREAM_BINARY);
  EXPECT_GT(Count(bytes, "./graph/graph.cc"), 0u) << "a failed check names its file";
  for (const std::string folder : {DAYDREAM_SOURCE_DIR "/", DAYDREAM_BINARY_DIR "/"}) {
    const size_t at = bytes.find(folder);
    EXPECT_EQ(at, std::string::npos) << bytes.c_str() + at;
  }
}

}  // namespace
}  // namespace daydream
