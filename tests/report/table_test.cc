#include "report/text/table.h"

#include <set>

#include <gtest/gtest.h>

#include "report/text/format.h"

namespace daydream {
namespace {

Table Sample() {
  Table table({{"kernel", Align::kLeft}, {"time"}, {"share"}});
  table.AddRow({"gemm", "74.3 ms", "40.8 %"});
  table.AddRow({"a|b, \"c\"", "1 ms", "0.5 %"});
  table.AddRule();
  table.AddRow({"all", "75.3 ms"});
  return table;
}

TEST(Table, AlignsNumbersRightAndNamesLeft) {
  EXPECT_EQ(Sample().Text(),
            "  kernel       time   share\n"
            "  -------------------------\n"
            "  gemm      74.3 ms  40.8 %\n"
            "  a|b, \"c\"     1 ms   0.5 %\n"
            "  -------------------------\n"
            "  all       75.3 ms\n");
}

TEST(Table, MarkdownEscapesBars) {
  std::string text = Sample().Markdown();
  EXPECT_NE(text.find("| --- | ---: | ---: |"), std::string::npos);
  EXPECT_NE(text.find("a\\|b"), std::string::npos);
}

TEST(Table, CsvQuotesWhatNeedsIt) {
  EXPECT_EQ(Sample().Csv(),
            "kernel,time,share\ngemm,74.3 ms,40.8 %\n\"a|b, \"\"c\"\"\",1 ms,0.5 %\n"
            "all,75.3 ms,\n");
}

TEST(Table, CutsNamesInTheMiddleOnNarrowTerminals) {
  Table table({{"kernel", Align::kLeft}, {"time"}});
  table.AddRow({"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128>", "1 ms"});
  std::string text = table.Text({.max_width = 40});
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 40u);
    begin = end + 1;
  }
  EXPECT_NE(text.find("..."), std::string::npos);
}

TEST(Table, NamesThatDifferAreNotCutToTheSame) {
  Table table({{"op", Align::kLeft}, {"time"}});
  for (const char* name :
       {"autograd::engine::evaluate_function: AddBackward0",
        "autograd::engine::evaluate_function: MulBackward0", "autograd::MulBackward0",
        "autograd_0_Backward0", "autograd_1_Backward0"}) {
    table.AddRow({name, "1 ms"});
  }
  for (const size_t width : {24, 28, 40}) {
    const std::string text = table.Text({.max_width = width});
    std::set<std::string> lines;
    size_t count = 0;
    for (size_t begin = 0; begin < text.size(); ++count) {
      const size_t end = text.find('\n', begin);
      EXPECT_LE(end - begin, width);
      lines.insert(text.substr(begin, end - begin));
      begin = end + 1;
    }
    EXPECT_EQ(lines.size(), count) << text;
  }
}

TEST(Table, CountsCodePointsNotBytes) {
  EXPECT_EQ(DisplayWidth("größe"), 5u);
  Table table({{"größe", Align::kLeft}, {"t"}});
  table.AddRow({"klein", "1"});
  EXPECT_EQ(table.Text({.indent = 0}), "größe  t\n--------\nklein  1\n");
}

TEST(Format, PicksTheUnit) {
  EXPECT_EQ(FormatTime(Duration::Ns(12)), "12 ns");
  EXPECT_EQ(FormatTime(Duration::Us(4)), "4.0 us");
  EXPECT_EQ(FormatTime(Duration::Us(509)), "509 us");
  EXPECT_EQ(FormatTime(Duration::Us(182'412)), "182.4 ms");
  EXPECT_EQ(FormatTime(Duration::Ms(13'300)), "13.3 s");
  EXPECT_EQ(FormatTime(Duration::Us(1300), TimeUnit::kMs), "1.30 ms");
}

TEST(Format, ShowsAsMuchOfATimeInSeconds) {
  EXPECT_EQ(FormatTime(Duration::Us(18'241), TimeUnit::kS), "0.0182 s");
  EXPECT_EQ(FormatTime(Duration::Us(412), TimeUnit::kS), "0.00041 s");
  EXPECT_EQ(FormatTime(Duration::Ns(3), TimeUnit::kS), "0.00000 s");
  EXPECT_EQ(FormatTime(Duration(), TimeUnit::kS), "0.00000 s");
  EXPECT_EQ(TimeIn(Duration::Us(18'241), TimeUnit::kS, 2), "0.01824");
  EXPECT_EQ(TimeIn(Duration::Ms(13'300), TimeUnit::kS, 1), "13.3");
  EXPECT_EQ(TimeIn(Duration::Us(4), TimeUnit::kNs, 2), "4000");
}

TEST(Format, TakesTheUnitThatAReaderWishesFor) {
  EXPECT_EQ(UnitFor(Duration::Us(18'241), TimeUnit::kUs), TimeUnit::kUs);
  EXPECT_EQ(UnitFor(Duration::Us(18'241), TimeUnit::kAuto), TimeUnit::kMs);
  for (const char* name : {"ns", "us", "ms", "s"}) EXPECT_EQ(UnitName(ParseTimeUnit(name)), name);
  EXPECT_EQ(ParseTimeUnit("auto"), TimeUnit::kAuto);
}

TEST(Format, SignsChangesButNotNothing) {
  EXPECT_EQ(FormatChange(Duration::Us(-38'100)), "-38.1 ms");
  EXPECT_EQ(FormatChange(Duration::Us(2500)), "+2.50 ms");
  EXPECT_EQ(FormatChange(Duration::Ns(-100), TimeUnit::kMs), "0.00 ms");
  EXPECT_EQ(FormatSignedPercent(-0.00001), "0.0 %");
  EXPECT_EQ(FormatSignedPercent(0.002), "+0.2 %");
}

TEST(Format, GroupsDigits) {
  EXPECT_EQ(FormatCount(7), "7");
  EXPECT_EQ(FormatCount(1392), "1,392");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(Plural(1, "step"), "1 step");
  EXPECT_EQ(Plural(1200, "step"), "1,200 steps");
  EXPECT_EQ(FormatBytes(7'200'000), "7.2 MB");
}

TEST(Format, NamesFromTheInputCannotControlTheTerminal) {
  EXPECT_EQ(Printable("a\033[31mb\nc"), "a?[31mb?c");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "x"),
            "?x");
}

TEST(Format, CutMiddleKeepsWholeCharacters) {
  EXPECT_EQ(CutMiddle("abcdefghij", 7), "ab...ij");
  EXPECT_EQ(CutMiddle("short", 10), "short");
  EXPECT_EQ(DisplayWidth(CutMiddle("ääääääääää", 7)), 7u);
}

}  // namespace
}  // namespace daydream
