// The lessons of `daydream tour`: what the program answers is what the generator knows.
// DD_UPDATE_DOCS=1 rewrites their pages.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "examples/lessons/lesson.h"
#include "report/questions/findings.h"
#include "report/text/format.h"
#include "tests/source_tree.h"
#include "tests/tools/cli_fixture.h"
#include "tests/tools/on_terminal.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

using examples::Lesson;
using examples::Lessons;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Tour : public CliFixture {
 protected:
  // What the program prints when `input` is typed.
  CliResult Type(const std::string& args, const std::string& input) const {
    Write("typed", input);
    const std::string line = fmt::format("{} {} <{} >{} 2>{}", DAYDREAM_BINARY, args, Path("typed"),
                                         Path("out"), Path("err"));
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadAll(Path("out")),
            ReadAll(Path("err"))};
  }
};

double NumberAfter(const std::string& json, const std::string& key) {
  const size_t at = json.find(fmt::format("\"{}\": ", key));
  return at == std::string::npos ? NAN : std::atof(json.c_str() + at + key.size() + 4);
}

std::string TextAfter(const std::string& json, const std::string& key) {
  const std::string quoted = fmt::format("\"{}\": \"", key);
  const size_t at = json.find(quoted);
  if (at == std::string::npos) return "nothing";
  const size_t begin = at + quoted.size();
  return json.substr(begin, json.find('"', begin) - begin);
}

std::vector<double> NumbersAfter(const std::string& json, const std::string& key) {
  std::vector<double> all;
  const std::string quoted = fmt::format("\"{}\": ", key);
  for (size_t at = 0; (at = json.find(quoted, at)) != std::string::npos; ++at) {
    all.push_back(std::atof(json.c_str() + at + quoted.size()));
  }
  return all;
}

fs::path PageOf(const Lesson& lesson) {
  const fs::path folder = DAYDREAM_SOURCE_DIR "/examples/lessons";
  const std::string name(lesson.name);
  if (lesson.id[0] >= 'A') return folder / "faults" / (name + ".md");
  return folder / fmt::format("{:0>2}-{}", lesson.id, name) / "README.md";
}

TEST_F(Tour, AnswersWhatTheGeneratorKnows) {
  for (const Lesson* lesson : Lessons()) {
    for (int seed : {7, 2026}) {
      const CliResult r =
          Run(fmt::format("tour {} --seed {} --answers --format json", lesson->id, seed));
      ASSERT_EQ(r.exit, 0) << lesson->id << ": " << r.err;
      if (!lesson->choices.empty()) {
        EXPECT_EQ(TextAfter(r.out, "answer"), TextAfter(r.out, "truth"))
            << "lesson " << lesson->id << ", seed " << seed;
        EXPECT_THAT(lesson->choices, Contains(TextAfter(r.out, "truth")));
        EXPECT_NE(TextAfter(r.out, "value"), TextAfter(r.out, "truth"));
        continue;
      }
      const double truth = NumberAfter(r.out, "truth"), answer = NumberAfter(r.out, "answer");
      EXPECT_NEAR(answer, truth, std::max(lesson->tolerance * truth, lesson->slack) + 1e-9)
          << "lesson " << lesson->id << ", seed " << seed;
      // Who thinks one of the wrong thoughts is not told to be right.
      const double right = std::max(lesson->near * truth, lesson->slack);
      const std::vector<double> thoughts = NumbersAfter(r.out, "value");
      EXPECT_EQ(thoughts.size(), lesson->thoughts.size());
      for (double thought : thoughts) {
        EXPECT_GT(std::fabs(thought - truth), right)
            << "lesson " << lesson->id << ", seed " << seed;
      }
    }
  }
}

// Their text is made of what the program answers, so a change of it shows here, too.
TEST_F(Tour, PagesAreWhatItPrints) {
  for (const Lesson* lesson : Lessons()) {
    const CliResult r = Run(fmt::format("tour {} --answers --format md", lesson->id));
    ASSERT_EQ(r.exit, 0) << r.err;
    EXPECT_EQ(r.err, "") << lesson->id;
    const fs::path page = PageOf(*lesson);
    if (std::getenv("DD_UPDATE_DOCS") != nullptr) {
      std::ofstream(page, std::ios::binary) << r.out;
      continue;
    }
    EXPECT_EQ(r.out, ReadText(page)) << page << ": DD_UPDATE_DOCS=1 cli_tour_test renews it";
  }
}

TEST_F(Tour, NotebookIsMadeOfTheSameText) {
  if (std::system("python3 -c 1 >/dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  const bool update = std::getenv("DD_UPDATE_DOCS") != nullptr;
  const CliResult r =
      Shell(fmt::format("python3 {}/examples/lessons/notebook.py {} {}", DAYDREAM_SOURCE_DIR,
                        DAYDREAM_BINARY, update ? "" : "--check"));
  EXPECT_EQ(r.exit, 0) << r.out << r.err;
}

TEST_F(Tour, ListsLessonsAsTextAndJson) {
  const CliResult text = Run("tour --list");
  EXPECT_EQ(text.exit, 0);
  EXPECT_EQ(Run("tour").out, text.out);
  const CliResult json = Run("tour --list --format json");
  for (const Lesson* lesson : Lessons()) {
    EXPECT_THAT(text.out, HasSubstr(std::string(lesson->title)));
    EXPECT_THAT(json.out, HasSubstr(fmt::format("\"lesson\": \"{}\"", lesson->id)));
  }
  EXPECT_THAT(json.out, HasSubstr("\"schema\": \"daydream.tour/1\""));
}

TEST_F(Tour, WithoutAnswersTellsNoAnswer) {
  const CliResult r = Run("tour 4 --non-interactive");
  EXPECT_EQ(r.exit, 0);
  EXPECT_THAT(r.out, HasSubstr("Question."));
  EXPECT_THAT(r.out, Not(HasSubstr("The answer")));
  EXPECT_THAT(Run("tour 4 --format json").out, Not(HasSubstr("\"truth\"")));
}

TEST_F(Tour, ComparesTheGuessAndNamesTheThoughtBehindIt) {
  const CliResult json = Run("tour 4 --answers --format json");
  const double truth = NumberAfter(json.out, "truth");
  const double wrong = NumbersAfter(json.out, "value").at(0);
  EXPECT_THAT(Run(fmt::format("tour 4 --guess {}", truth)).out, HasSubstr("Right: it is"));
  const CliResult low = Run(fmt::format("tour 4 --guess {}", wrong));
  EXPECT_THAT(low.out, HasSubstr("% too low"));
  EXPECT_THAT(low.out, HasSubstr("nobody waits for it"));
  EXPECT_THAT(Run("tour A --guess one_time").out, HasSubstr("Right: it is one_time"));
  EXPECT_THAT(Run("tour 1 --guess '17 ms'").out, HasSubstr("You said 17 ms. Right: it is 17.0"));
  EXPECT_THAT(Run("tour 1 --guess 17000").out, HasSubstr("Was it in microseconds?"));
  EXPECT_THAT(Run("tour 3 --guess 1.0x").out, HasSubstr("Right: it is"));
  EXPECT_THAT(Run("tour 3 --guess '1 times'").out, HasSubstr("Right: it is"));
  EXPECT_THAT(Run("tour 1 --guess 17,0").out, HasSubstr("You said 17"));
  EXPECT_THAT(Run("tour 1 --guess 1.7,0").err, HasSubstr("with a point"));
  EXPECT_THAT(Run("tour 3 --guess '12 ms'").err, HasSubstr("'12 ms' is no number of times"));
  EXPECT_THAT(Run("tour A --guess 5").out, HasSubstr("You said allocator. It is one_time."));
  EXPECT_THAT(Run("tour A --guess 1").out, HasSubstr("The steps are unequal, too"));
}

// One item() copies a value and then waits for the stream once more: that is one read.
TEST_F(Tour, CountsAValueThatIsReadOnce) {
  ASSERT_EQ(Run("tour 7 --save " + Path("")).exit, 0);
  const CliResult r = Run("whatif " + Path("lesson7.ddtrace") + " --opt no-sync");
  EXPECT_THAT(r.err, HasSubstr("values: once a step at aten::item"));
}

// Ranks are shown as 0 to 3, so these are the numbers that mean them.
TEST_F(Tour, TakesTheChoicesThatItShows) {
  for (const char* guess : {"1", "'rank 1'", "rank1", "'Rank 1'", "rank-1"}) {
    EXPECT_THAT(Run(fmt::format("tour 10 --guess {}", guess)).out, HasSubstr("You said rank 1."));
  }
  EXPECT_THAT(Run("tour 10 --guess 0").out, HasSubstr("You said rank 0."));
  for (const char* guess : {"-1", "'rank -1'"}) {
    EXPECT_THAT(Run(fmt::format("tour 10 --guess={}", guess)).err, HasSubstr("is no choice"));
  }
  const CliResult four = Run("tour 10 --guess 4");
  EXPECT_EQ(four.exit, 2);
  EXPECT_THAT(four.err, HasSubstr("one of: rank 0, rank 1, rank 2, rank 3"));
  EXPECT_THAT(Run("tour A --guess 6").err, HasSubstr("a number from 1 to 5"));
  const CliResult json = Run("tour 10 --answers --format json");
  EXPECT_EQ(TextAfter(json.out, "truth"), "rank 1");
}

TEST_F(Tour, RefusesGuessesThatNothingCanTake) {
  for (const char* guess : {"0", "-3"}) {
    const CliResult r = Run(fmt::format("tour 3 --guess={}", guess));
    EXPECT_EQ(r.exit, 2) << guess;
    EXPECT_THAT(r.err, HasSubstr("the answer is above 0")) << guess;
  }
  // "Nothing" is a usual answer there.
  EXPECT_THAT(Run("tour 12 --guess 0").out, HasSubstr("You said 0 ms."));
}

// The copy stays hidden behind the launches with every seed, as the text says.
TEST_F(Tour, PinnedCopiesAreHiddenAtHalfTheirRate) {
  for (int seed : {2, 5, 13, 14, 18, 26, 30, 31, 42}) {
    const CliResult r = Run(fmt::format("tour 6 --seed {} --answers --format json", seed));
    EXPECT_NEAR(NumberAfter(r.out, "at_5"), NumberAfter(r.out, "answer"), 0.02) << seed;
  }
}

// Up to a tenth, of the number that is shown: "1.00" may stand for 0.9998.
TEST_F(Tour, TakesATenthOffForRight) {
  for (int seed = 1; seed <= 12; ++seed) {
    const std::string tour = fmt::format("tour 9 --seed {} ", seed);
    const CliResult r = Run(tour + "--answers");
    double shown = 0;
    ASSERT_EQ(std::sscanf(r.out.c_str() + r.out.find("The answer: "), "The answer: %lf", &shown),
              1);
    EXPECT_THAT(Run(tour + fmt::format("--guess {:.6f}", shown * 1.1)).out, HasSubstr("Right"));
    EXPECT_THAT(Run(tour + fmt::format("--guess {:.6f}", shown * 0.9)).out, HasSubstr("Right"));
    EXPECT_THAT(Run(tour + fmt::format("--guess {:.6f}", shown * 1.11)).out,
                HasSubstr("11 % too high"));
  }
}

TEST_F(Tour, SaysHowNearIsRight) {
  EXPECT_THAT(Run("tour 11 --non-interactive").out,
              HasSubstr("A guess counts as right within 10 % or 0.5 ms, whichever is more."));
  EXPECT_THAT(Run("tour 11 --guess 62").out, HasSubstr("Right, near enough (within 10 %"));
  // Not "10 %", which would be near enough.
  const CliResult json = Run("tour 11 --answers --format json");
  const double truth = NumberAfter(json.out, "truth");
  EXPECT_THAT(Run(fmt::format("tour 11 --guess {:.4f}", truth * 1.102)).out,
              HasSubstr("you are 10.2 % too high"));
  // "Nothing is gained" and "it gets slower" are the point of these.
  for (const char* guess : {"0.91", "1.1"}) {
    EXPECT_THAT(Run(fmt::format("tour 3 --guess {}", guess)).out, Not(HasSubstr("Right")));
  }
  EXPECT_THAT(Run("tour 8 --guess 0.92").out, Not(HasSubstr("Right")));
}

TEST_F(Tour, ToldAnswersAreRightAndWrongChoicesHaveReasons) {
  for (const Lesson* lesson : Lessons()) {
    for (int seed = 1; seed <= 3; ++seed) {
      const std::string tour = fmt::format("tour {} --seed {} ", lesson->id, seed);
      const CliResult json = Run(tour + "--answers --format json");
      if (lesson->choices.empty()) {
        const double answer = NumberAfter(json.out, "answer");
        EXPECT_THAT(Run(tour + fmt::format("--guess {:.5f}", answer)).out, HasSubstr("Right"))
            << tour;
        continue;
      }
      EXPECT_EQ(lesson->thoughts.size(), lesson->choices.size() - 1) << tour;
      for (std::string_view choice : lesson->choices) {
        const std::string own = fmt::format("\"value\": \"{}\"", choice);
        const bool right = choice == TextAfter(json.out, "truth");
        EXPECT_EQ(json.out.find(own) == std::string::npos, right) << tour << choice;
      }
    }
  }
}

// The paragraphs, without spaces.
std::string Paragraphs(const std::string& text) {
  std::string out;
  for (std::string line : SplitLines(text)) {
    if (line.starts_with(' ')) continue;
    std::erase_if(line, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
    out += line;
  }
  return out;
}

// The first word of each line that a command prints, or of those with columns; of a name whose
// middle is cut out its begin.
std::vector<std::string> FirstWords(const std::string& text, bool with_columns) {
  std::vector<std::string> words;
  for (const std::string& line : SplitLines(text)) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == 0 || begin == line.npos || line[begin] == '\r') continue;
    std::string word = line.substr(begin, line.find_first_of(" \r", begin) - begin);
    if (with_columns && line.find("  ", begin) == line.npos) continue;
    if (word.starts_with("---")) continue;  // a rule is as wide as there is room
    word.resize(std::min(word.size(), word.find("...")));
    words.push_back(word);
  }
  return words;
}

TEST_F(Tour, TextFitsANarrowTerminal) {
  const std::string wide = Run("tour 4 --non-interactive").out;
  EXPECT_TRUE(std::ranges::any_of(SplitLines(wide), [](const auto& l) { return l.size() > 80; }));
  // No row is lost where a terminal breaks the lines before, and none is broken itself: columns
  // are left out, as where the command is run.
  const std::set<std::string> cells = {"confidence", "measured", "medium", "low", "high", "MB"};
  for (const Lesson* lesson : Lessons()) {
    const std::string tour = fmt::format("tour {} --answers", lesson->id);
    const std::string narrow = OnTerminal(fmt::format("{} {}", DAYDREAM_BINARY, tour));
    for (const std::string& line : SplitLines(narrow)) {
      EXPECT_LE(DisplayWidth(line), 81u) << line;  // with the '\r' of a terminal
      const size_t begin = std::min(line.find_first_not_of(' '), line.size());
      EXPECT_FALSE(cells.contains(line.substr(begin, line.find('\r') - begin))) << line;
      const bool row = line.starts_with("  baseline ");
      EXPECT_TRUE(!row || line.find("1.00x") != std::string::npos) << line;
    }
    const std::string whole = Run(tour).out;
    EXPECT_EQ(Paragraphs(narrow), Paragraphs(whole)) << lesson->id;
    const std::vector<std::string> shown = FirstWords(narrow, false);
    auto at = shown.begin();
    for (const std::string& word : FirstWords(whole, true)) {
      at = std::find_if(at, shown.end(), [&](const std::string& s) { return word.starts_with(s); });
      EXPECT_NE(at, shown.end()) << lesson->id << " lost the row " << word;
      if (at == shown.end()) break;
      ++at;
    }
  }
}

TEST_F(Tour, CommandsStayWholeOnANarrowTerminal) {
  const std::string narrow = OnTerminal(fmt::format("{} tour 3 --answers", DAYDREAM_BINARY));
  // What goes on in the next line can be copied as it is.
  EXPECT_THAT(narrow, HasSubstr("  $ daydream whatif lesson3.ddtrace "
                                "--opt 'speedup(select=kind:kernel, by=2)' \\\r\n"
                                "      --opt graphs | head -9\r\n"));
  // A number stays with its unit.
  for (const Lesson* lesson : Lessons()) {
    const std::string text =
        OnTerminal(fmt::format("{} tour {} --answers", DAYDREAM_BINARY, lesson->id));
    for (const std::string& line : SplitLines(text)) {
      EXPECT_FALSE(line.starts_with("ms") || line.starts_with("% ")) << line;
    }
  }
}

TEST_F(Tour, EachFindingIsExplained) {
  for (int kind = 0; kind <= static_cast<int>(FindingKind::kOther); ++kind) {
    const std::string name(Name(static_cast<FindingKind>(kind)));
    const CliResult r = Run("explain " + name);
    EXPECT_EQ(r.exit, 0) << name;
    EXPECT_GT(r.out.size(), 80u) << name;
    EXPECT_THAT(Run("explain").out, HasSubstr("  " + name + "\n"));
  }
  for (std::string_view choice : examples::FindLesson("A")->choices) {
    EXPECT_EQ(Run(fmt::format("explain {}", choice)).exit, 0);
  }
}

TEST_F(Tour, FindsALetterInEitherCase) {
  EXPECT_EQ(Run("tour a --answers").out, Run("tour A --answers").out);
  EXPECT_EQ(Run("tour a --answers").exit, 0);
}

TEST_F(Tour, AsksGivesHintsAndRefusesWhatIsNoNumber) {
  const CliResult r = Type("tour 1", "\n\n\nmany\n10\n");
  EXPECT_THAT(r.out, HasSubstr("No more hints"));
  EXPECT_EQ(r.exit, 0);
  EXPECT_THAT(r.out, HasSubstr("Hint 1 of 2"));
  EXPECT_THAT(r.out, HasSubstr("Hint 2 of 2"));
  EXPECT_THAT(r.err, HasSubstr("'many' is no number"));
  EXPECT_THAT(r.out, HasSubstr("You said 10 ms"));
  EXPECT_THAT(r.out, HasSubstr("What surprises"));
}

TEST_F(Tour, EndOfInputEndsItWithoutTellingTheAnswer) {
  const CliResult r = Run("tour 1 --seed 3");
  EXPECT_EQ(r.exit, 0);
  EXPECT_THAT(r.out, HasSubstr("daydream tour 1 --seed 3 begins again"));
  EXPECT_THAT(r.out, Not(HasSubstr("The answer")));
}

TEST_F(Tour, SavesTracesThatOtherCommandsRead) {
  ASSERT_EQ(Run("tour 10 --save " + Path("here")).exit, 0);
  EXPECT_EQ(Run("ranks " + Path("here/lesson10")).exit, 0);
  EXPECT_EQ(Run("tour 10 --save " + Path("here")).exit, 1) << "files are not replaced";
  EXPECT_EQ(Run("tour 10 -f --save " + Path("here")).exit, 0);
  const CliResult both = Run("tour 10 --guess 1 --save " + Path("there"));
  EXPECT_EQ(both.exit, 2);
  EXPECT_FALSE(fs::exists(Path("there")));
}

TEST_F(Tour, AnotherSeedIsAnotherLesson) {
  const CliResult one = Run("tour 9 --answers"), same = Run("tour 9 --answers");
  EXPECT_EQ(one.out, same.out);
  EXPECT_NE(one.out, Run("tour 9 --answers --seed 5").out);
}

TEST_F(Tour, RefusesWhatIsNotThere) {
  const CliResult r = Run("tour 99");
  EXPECT_EQ(r.exit, 2);
  EXPECT_THAT(r.err, HasSubstr("there is no lesson '99'"));
  EXPECT_THAT(Run("tour amq").err, HasSubstr("did you mean 'amp'?"));
  EXPECT_EQ(Run("tour 1 --seed x").exit, 2);
  EXPECT_EQ(Run("tour 1 --guess x").exit, 2);
  const CliResult which = Run("tour --answers");
  EXPECT_EQ(which.exit, 2);
  EXPECT_THAT(which.err, HasSubstr("--answers is for one lesson"));
  EXPECT_EQ(Run("tour 1 --answers --format csv").exit, 2);
}

}  // namespace
}  // namespace daydream
