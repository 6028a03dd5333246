// daydream tour: twelve lessons in the terminal. Guess a number, then see what is true and why.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>

#include <fmt/ranges.h>

#include "tools/command.h"
#include "tools/tour/lesson_pages.h"

namespace daydream {
namespace {

using examples::Lesson;

absl::Status NoLesson(std::string_view id) {
  std::vector<std::string_view> ids;
  for (const Lesson* lesson : examples::Lessons()) ids.push_back(lesson->name);
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0104",
       .what = fmt::format("there is no lesson '{}'{}", id, DidYouMean(id, ids)),
       .fix = "daydream tour --list; a lesson has a number, a faulty trace a letter"});
}

// A choice by its name or, where choices have no numbers of their own, by its place.
absl::StatusOr<double> ParseChoice(const Lesson& lesson, std::string_view word) {
  if (const int place = ChoiceOf(lesson, word); place > 0) return place;
  const int count = static_cast<int>(lesson.choices.size());
  int place = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), place);
  const bool whole = error == std::errc() && end == word.data() + word.size();
  if (whole && !NamedByNumber(lesson) && place >= 1 && place <= count) return place;
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0104",
       .what = fmt::format("'{}' is no choice", word),
       .fix = NamedByNumber(lesson) ? fmt::format("one of: {}", fmt::join(lesson.choices, ", "))
                                    : fmt::format("a number from 1 to {}, or the name", count)});
}

std::string Trim(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.pop_back();
  }
  text.erase(0, std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

absl::StatusOr<double> ParseGuess(const LessonText& text, std::string_view word) {
  const Lesson& lesson = *text.lesson;
  if (!lesson.choices.empty()) return ParseChoice(lesson, word);
  std::string number(word);
  // As half of the world writes it; no answer is as large as a thousand.
  if (number.find('.') == number.npos) std::replace(number.begin(), number.end(), ',', '.');
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  const std::string rest = Trim(end);
  const bool factor_asked = lesson.unit.starts_with("times");
  const std::string_view unit = factor_asked ? "times" : lesson.unit;
  const bool is_number =
      end != number.c_str() && std::isfinite(value) &&
      (rest.empty() || rest == lesson.unit || rest == unit || (factor_asked && rest == "x"));
  if (is_number && (value > 0 || (value == 0 && MayBeZero(text)))) return value;
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = is_number ? fmt::format("'{}' cannot be: the answer is above 0", word)
                                       : fmt::format("'{}' is no number of {}", word, unit),
                     .fix = factor_asked ? "how many times as fast, with a point, as in 0.5"
                                         : "a number of milliseconds, with a point, as in 0.5"});
}

absl::StatusOr<uint64_t> ParseSeed(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return seed;
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = fmt::format("--seed '{}' is not a whole number from 0 to {}", text,
                                         std::numeric_limits<uint64_t>::max()),
                     .fix = "--seed 7: the same number gives the same lesson"});
}

// Columns of a terminal that is narrower than the lessons are written; 0: it is not.
size_t NarrowWidth(const Session& session) {
  constexpr size_t kWritten = 100;
  const size_t width = session.table_style().max_width;
  return width < kWritten ? width : 0;
}

absl::Status Print(Session& session, std::string_view text) {
  return session.WriteResult(Args(), Reflowed(text, NarrowWidth(session)));
}

std::string TracesOf(const LessonText& text) {
  return fmt::format(
      "\nThe traces of this lesson, for these commands: daydream tour {}{} --save .\n",
      text.lesson->id, SeedFlag(text));
}

// What a learner is asked, from the question to the last word. The end of the input ends it.
absl::StatusOr<Exit> Ask(const LessonText& text, Session& session) {
  DD_RETURN_IF_ERROR(Print(session, LessonOpening(text)));
  size_t hints = 0;
  while (true) {
    const bool more = hints < text.hints.size();
    const std::string unit =
        text.lesson->choices.empty() ? std::string(text.lesson->unit) : "its number";
    DD_RETURN_IF_ERROR(Print(session, fmt::format("\nYour guess ({}; {}): ", unit,
                                                  more ? "empty line: a hint" : "? gives up")));
    std::string line;
    if (!std::getline(std::cin, line)) {
      DD_RETURN_IF_ERROR(Print(session, fmt::format("\nNo guess. daydream tour {}{} begins again, "
                                                    "--answers tells.\n",
                                                    text.lesson->id, SeedFlag(text))));
      return Exit::kOk;
    }
    line = Trim(line);
    if (line == "?") break;
    if (line.empty()) {
      DD_RETURN_IF_ERROR(Print(
          session, more ? LessonHint(text, hints++) : "No more hints: guess, or ? gives up.\n"));
      continue;
    }
    const auto guess = ParseGuess(text, line);
    if (!guess.ok()) {
      session.Error(guess.status());
      continue;
    }
    DD_RETURN_IF_ERROR(Print(session, "\n" + Judge(text, *guess)));
    break;
  }
  DD_RETURN_IF_ERROR(Print(session, "\n" + LessonEnding(text)));
  DD_RETURN_IF_ERROR(Print(session, TracesOf(text)));
  const auto& all = examples::Lessons();
  const auto next = std::ranges::find(all, text.lesson) + 1;
  if (next != all.end()) {
    session.Next(fmt::format("daydream tour {}{}", (*next)->id, SeedFlag(text)));
  }
  return Exit::kOk;
}

std::string Whole(const LessonText& text, const Args& args, const std::string& judged) {
  std::string out = LessonOpening(text);
  const bool answers = args.Has("--answers") || !judged.empty();
  if (args.Has("--answers") && judged.empty()) {
    for (size_t i = 0; i < text.hints.size(); ++i) out += "\n" + LessonHint(text, i);
  }
  if (!judged.empty()) out += "\n" + judged;
  if (answers) return out + "\n" + LessonEnding(text) + TracesOf(text);
  return out + fmt::format("\nWrite your answer down, then: daydream tour {}{} --answers\n",
                           text.lesson->id, SeedFlag(text));
}

absl::StatusOr<Exit> ListLessons(const Args& args, Session& session) {
  DD_RETURN_IF_ERROR(session.WriteResult(args, {.table = LessonList,
                                                .json = LessonListJson,
                                                .csv = LessonListCsv,
                                                .markdown = LessonListMarkdown}));
  return Exit::kOk;
}

absl::Status WhichLesson(std::string_view flag) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = fmt::format("{} is for one lesson, and none is named", flag),
                     .fix = fmt::format("daydream tour 3 {}; daydream tour lists them", flag)});
}

absl::StatusOr<Exit> RunTour(const Args& args, Session& session) {
  if (!args.Has("--list") && args.positional().empty()) {
    for (std::string_view flag : {"--answers", "--guess", "--save"}) {
      if (args.Has(flag)) return WhichLesson(flag);
    }
  }
  if (args.Has("--list") || args.positional().empty()) return ListLessons(args, session);
  const Lesson* lesson = examples::FindLesson(args.positional()[0]);
  if (lesson == nullptr) return NoLesson(args.positional()[0]);
  DD_ASSIGN_OR_RETURN(const uint64_t seed, ParseSeed(args.Get("--seed")));
  DD_ASSIGN_OR_RETURN(const Format format, FormatOf(args));
  if (format == Format::kCsv) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = "a lesson is no table",
                       .fix = "--format table, md or json; --list has csv"});
  }
  if (args.Has("--save") && (args.Has("--guess") || args.Has("--answers"))) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = "--save writes the traces and tells nothing of the lesson",
                       .fix = "one run with --save, one without"});
  }
  if (args.Has("--save")) {
    DD_ASSIGN_OR_RETURN(const examples::LessonPlay play, lesson->play(seed));
    DD_RETURN_IF_ERROR(
        SaveTraces(play, std::string(args.Get("--save")), args.Has("--force-overwrite")));
    for (const auto& file : play.files) {
      session.Note(fmt::format("wrote {}/{}", args.Get("--save"), file.name));
    }
    return Exit::kOk;
  }
  const size_t width = format == Format::kTable ? NarrowWidth(session) : 0;
  session.Progress(fmt::format("making lesson {}", lesson->id));
  DD_ASSIGN_OR_RETURN(const LessonText text, PrepareLesson(*lesson, seed, width));
  session.EndProgress();
  std::string judged;
  if (args.Has("--guess")) {
    DD_ASSIGN_OR_RETURN(const double guess, ParseGuess(text, args.Get("--guess")));
    judged = Judge(text, guess);
  }
  const bool answers = args.Has("--answers");
  const bool asks = format == Format::kTable && !answers && judged.empty() &&
                    !args.Has("--non-interactive") && !args.Has("--output");
  if (asks) return Ask(text, session);
  DD_RETURN_IF_ERROR(session.WriteResult(
      args, {.table = [&] { return Reflowed(Whole(text, args, judged), NarrowWidth(session)); },
             .json = [&] { return LessonJson(text, answers); },
             .csv = {},
             .markdown = [&] { return LessonMarkdown(text, answers); }}));
  return Exit::kOk;
}

constexpr Flag kTourFlags[] = {
    {.name = "--list", .help = "the lessons, with how long each takes"},
    {.name = "--seed",
     .value = "N",
     .help = "other numbers: the same N gives the same lesson",
     .fallback = "1"},
    {.name = "--answers", .help = "hints, answer and explanation, without asking"},
    {.name = "--non-interactive", .help = "never ask: print story and question"},
    {.name = "--guess", .value = "NUMBER", .help = "your answer, instead of being asked"},
    {.name = "--save",
     .value = "DIR",
     .help = "write the traces of the lesson there, nothing else"},
};

}  // namespace

const Command kTourCommand = {
    .name = "tour",
    .summary = "twelve lessons: guess a number, then see what is true and why",
    .usage = "[LESSON] [--seed N] [--answers]",
    .details =
        R"(Each lesson makes a small trace whose truth is known, tells its story and asks for a
number. An empty line gives a hint, '?' gives up. Then it says how far off the guess
was, runs the commands that answer the question, and explains. Without LESSON, or with
--list, it lists them. Nothing is downloaded and no GPU is needed.

Letters are faulty traces: which finding of daydream info is this? --save writes the
traces, to try other commands on them. Lessons as pages and notebooks, and a plan for
teachers, are in examples/lessons.)",
    .examples =
        R"(daydream tour
daydream tour 3
daydream tour 3 --seed 7 --guess 1.5
daydream tour 3 --non-interactive --answers
daydream tour 10 --save .)",
    .flags = kTourFlags,
    .takes = {.result = true, .times = false, .most = 1},
    .run = RunTour,
};

}  // namespace daydream
