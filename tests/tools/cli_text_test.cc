// Names from a trace in every format of output: shown, never acting.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "report/text/escape.h"
#include "report/text/format.h"
#include "report/text/table.h"
#include "tests/tools/cli_fixture.h"
#include "tests/tools/small_trace.h"

namespace daydream {
namespace {

using testing::HasSubstr;
using testing::Not;

// In JSON's spelling: a formula, HTML, Markdown, a colour, C1, a turn of direction, no width.
constexpr char kEvil[] =
    R"(=cmd|' /C calc'!A0<script>alert(1)</script>`[x](javascript:1)\"\n\\\"];evil\u001b]0;t\u0007)"
    R"(\u0085\u009b31m\u202e\u2066\u200b\ufeff)";

// Hidden characters but for line ends; colours of ours are not asked for.
void ExpectNothingHidden(const std::string& text, const std::string& what) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text, i);
    ASSERT_GT(length, 0u) << what << " at byte " << i;
    const char32_t c = DecodeUtf8(text, i, length);
    ASSERT_TRUE(c == '\n' || c == '\t' || !IsHidden(c))
        << what << ": U+" << std::hex << static_cast<uint32_t>(c) << " at byte " << std::dec << i
        << " of " << text.substr(i > 40 ? i - 40 : 0, 80);
    i += length;
  }
}

class Injection : public CliFixture {
 protected:
  void SetUp() override {
    CliFixture::SetUp();
    if (!IsSkipped()) Write("evil.json", SmallTrace(6, "", kEvil));
  }
  std::string Out(const std::string& args) const {
    const CliResult r = Run(args);
    EXPECT_EQ(r.exit, 0) << args << r.err;
    ExpectNothingHidden(r.out, args);
    ExpectNothingHidden(r.err, args);
    return r.out;
  }
  std::string trace() const { return Path("evil.json"); }
};

TEST_F(Injection, TablesAndMessages) {
  for (const char* command :
       {"info -v ", "summary ", "whatif --opt free-host --top 20 ", "advise ", "causal "}) {
    const CliResult r = Run(command + trace());
    ExpectNothingHidden(r.out, command);
    ExpectNothingHidden(r.err, command);
  }
  EXPECT_THAT(Out("summary --by kernel " + trace()), HasSubstr("=cmd"));
}

TEST_F(Injection, Csv) {
  for (const char* command : {"summary --by kernel --format csv ", "export --to csv "}) {
    const std::string out = Out(command + trace());
    EXPECT_THAT(out, HasSubstr("'=cmd")) << command;
    // No cell begins with the formula.
    EXPECT_THAT(out, Not(HasSubstr(",=cmd"))) << command;
    EXPECT_THAT(out, Not(HasSubstr("\"=cmd"))) << command;
    EXPECT_THAT(out, Not(HasSubstr("\n=cmd"))) << command;
  }
}

TEST_F(Injection, Markdown) {
  const std::string out = Out("summary --by kernel --format md " + trace());
  EXPECT_THAT(out, HasSubstr("=cmd\\|"));
  EXPECT_THAT(out, HasSubstr("&lt;script>"));
  EXPECT_THAT(out, Not(HasSubstr("<script>")));
  // No link: the bracket that would end its text is escaped.
  EXPECT_THAT(out, HasSubstr("\\](javascript"));

  Write("a<script>[x](y).json", SmallTrace(6));
  for (const char* command : {"whatif --opt free-host", "advise"}) {
    const std::string named =
        Out(fmt::format("{} --format md '{}'", command, Path("a<script>[x](y).json")));
    EXPECT_THAT(named, HasSubstr("a&lt;script>")) << command;
    EXPECT_THAT(named, HasSubstr("\\](y)")) << command;
  }
}

TEST_F(Injection, Html) {
  Out("report --opt free-host -o " + Path("page.html") + " " + trace());
  const std::string page = ReadAll(Path("page.html"));
  EXPECT_THAT(page, HasSubstr("=cmd|"));  // the name is there
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  ExpectNothingHidden(page, "page");
}

TEST_F(Injection, Json) {
  for (const char* command : {"summary --by kernel --format json ", "export --to chrome ",
                              "whatif --format json --opt free-host ", "info --format json "}) {
    const std::string out = Out(command + trace());
    EXPECT_TRUE(nlohmann::json::accept(out)) << command;
    EXPECT_THAT(out, Not(HasSubstr("<script>"))) << command;
  }
  const auto json = nlohmann::json::parse(Out("summary --by kernel --format json " + trace()));
  EXPECT_THAT(json.dump(), HasSubstr("\xE2\x80\xAE"));  // the name itself is whole
}

TEST_F(Injection, Perfetto) {
  Out("export --to perfetto -o " + Path("t.pftrace") + " " + trace());
  const std::string bytes = ReadAll(Path("t.pftrace"));
  EXPECT_THAT(bytes, HasSubstr("=cmd"));               // the name is there
  EXPECT_THAT(bytes, Not(HasSubstr("\xE2\x80\xAE")));  // what turns the direction is not
}

TEST_F(Injection, Chakra) {
  Out("export --to chakra -o " + Path("t.et") + " " + trace());
  const std::string bytes = ReadAll(Path("t.et"));
  EXPECT_THAT(bytes, HasSubstr("=cmd"));  // the name is there
  for (const char* hidden : {"\xE2\x80\xAE", "\xE2\x81\xA6", "\xC2\x9B", "\xE2\x80\x8B"}) {
    EXPECT_EQ(bytes.find(hidden), bytes.npos) << bytes.find(hidden);
  }
}

TEST_F(Injection, Stacks) { EXPECT_THAT(Out("export --folded " + trace()), HasSubstr("=cmd")); }

TEST_F(Injection, Picture) {
  const std::string picture = Out("export --opt free-host --to svg " + trace());
  EXPECT_THAT(picture, Not(HasSubstr("<script")));
}

TEST_F(Injection, Dot) {
  const std::string out = Out("export --to dot " + trace());
  // Every quote of the name is escaped: no statement begins behind it.
  EXPECT_THAT(out, Not(HasSubstr("\n\"];evil")));
  for (size_t at = 0; (at = out.find("];evil", at)) != std::string::npos; ++at) {
    EXPECT_EQ(out.substr(at - 2, 2), "\\\"");
  }
}

TEST_F(Injection, NamesOfFilesAndArguments) {
  const std::string evil = "\x1b]0;t\x07\xE2\x80\xAE.json";
  for (const std::string& args :
       {"info '" + Path(evil) + "'", "whatif " + trace() + " --opt '" + evil + "'",
        "'" + evil + "'", "sweep " + trace() + " --opt 'prefetch(" + evil + "=1..2)'",
        "opt check '" + Path(evil) + "'"}) {
    for (const char* format : {"text", "json"}) {
      const CliResult r = Run(args + " --message-format " + format);
      EXPECT_NE(r.exit, 0) << args;
      ExpectNothingHidden(r.err, args);
    }
  }
}

TEST_F(Injection, NamesInTheResultItself) {
  const std::string evil = "\033[31mred\033[0m\nnew line";
  Write(evil + ".ddtrace", ReadAll(kExampleTrace));
  const std::string scaled =
      Out("scale '" + Path(evil) + ".ddtrace' --fabric nvlink4 --ranks 1,2 --color never");
  EXPECT_EQ(scaled.find("\nnew line"), scaled.npos) << scaled;
  std::string device = ReadAll(DAYDREAM_SOURCE_DIR "/costmodel/devices/h100_sxm5_80gb.textproto");
  const std::string name = "name: \"";
  const size_t at = device.find(name) + name.size();
  Write("device.textproto", device.insert(at, "\\033[31mred\\033[0m\\nnew line"));
  const std::string priced =
      Out("kernels --gpu " + Path("device.textproto") + " --gemm 128x128x128 --color never");
  EXPECT_EQ(priced.find("\nnew line"), priced.npos) << priced;
}

TEST(Escape, Html) {
  EXPECT_EQ(HtmlText("<b a='1' c=\"2\">&\x1b\xE2\x80\xAE"),
            "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;??");
}

TEST(Escape, CsvFormulasAndNumbers) {
  for (const char* text : {"=1+1", "+cmd|' /C calc'!A0", "-1+cmd|x", "@SUM(A1)", "--opt", " =1+1",
                           "\u00A0 +1+1", "\uFF1D1+1"}) {
    EXPECT_THAT(CsvField(text), testing::StartsWith("'")) << text;
  }
  for (const char* text : {"-3", "+2.5 ms", "-38.1 %", "-", "1e9", "amp(dtype=bf16)", "a-b"}) {
    EXPECT_EQ(CsvField(text), text);
  }
  EXPECT_EQ(CsvField("+1,200 steps"), "\"+1,200 steps\"");
}

TEST_F(CliFixture, AThreadIsNamedOnce) {
  Write("named.json", SmallTrace(6, R"({"ph":"M","name":"thread_name","pid":1,"tid":1,)"
                                    R"x("args":{"name":"thread 1 (python)"}},)x"));
  EXPECT_THAT(Run("info " + Path("named.json")).out,
              HasSubstr("lanes       thread 1 (python): 24 events\n"));
}

TEST_F(CliFixture, TheHeadlineSaysOfHowManyStepsThoseThatCountAre) {
  Write("six.json", SmallTrace(6));
  EXPECT_THAT(Run("info " + Path("six.json")).out, HasSubstr("steps       5 of 6 count; "));
  EXPECT_THAT(Run("whatif " + Path("six.json") + " --opt free-launch").out,
              HasSubstr("six.json, 5 of 6 steps, "));
}

TEST(Escape, HiddenCharactersOfEveryPlane) {
  for (const char* text : {"\x01", "\x7f", "\xC2\x80", "\xC2\x9F", "\xC2\xAD", "\xD8\x9C",
                           "\xE2\x80\x8B", "\xE2\x80\x8F", "\xE2\x80\xA8", "\xE2\x80\xAE",
                           "\xE2\x81\xA6", "\xEF\xBB\xBF", "\xF3\xA0\x80\x81", "\xff", "\xC3"}) {
    EXPECT_EQ(Printable(text), "?");
    EXPECT_EQ(PrintableText(text, true), "?");
  }
  for (const char* text : {"gr\xC3\xB6\xC3\x9F"
                           "e",
                           "\xE6\xA0\xB8", "\xF0\x9F\x94\xA5"}) {
    EXPECT_EQ(Printable(text), text);
  }
  const std::string text = "\033[1mbold\033[0m\n\tx\033]0;t\007";
  EXPECT_EQ(PrintableText(text, true), "\033[1mbold\033[0m\n\tx?]0;t?");
  EXPECT_EQ(PrintableText(text, false), "?[1mbold?[0m\n\tx?]0;t?");
}

}  // namespace
}  // namespace daydream
