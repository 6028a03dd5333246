#include "tools/tour/lesson_pages.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/text/table.h"
#include "report/text/unit_word.h"
#include "tools/tour/terminal_text.h"

namespace daydream {
namespace {

using examples::Lesson;

constexpr std::string_view kSchema = "daydream.tour/1";

bool IsFault(const Lesson& lesson) { return lesson.id[0] >= 'A'; }

// Of the lessons, or of the faulty traces.
int MinutesOf(bool faults) {
  int minutes = 0;
  for (const Lesson* lesson : examples::Lessons()) {
    if (IsFault(*lesson) == faults) minutes += lesson->minutes;
  }
  return minutes;
}

std::string Heading(const Lesson& lesson) {
  return fmt::format("{} {}: {}", IsFault(lesson) ? "Faulty trace" : "Lesson", lesson.id,
                     lesson.title);
}

std::string Choices(const Lesson& lesson) {
  std::string out;
  for (size_t i = 0; i < lesson.choices.size(); ++i) {
    out += NamedByNumber(lesson) ? fmt::format("\n  {}", lesson.choices[i])
                                 : fmt::format("\n  {}  {}", i + 1, lesson.choices[i]);
  }
  return out;
}

// What may be said to the question, and how near is right.
std::string Asked(const Lesson& lesson) {
  if (!lesson.choices.empty()) return Choices(lesson);
  return fmt::format("\nA guess counts as right within {}.", RightWithin(lesson));
}

// Whether a command prints nothing at the left edge.
bool IsMovedIn(std::string_view text) {
  return text.starts_with(' ') && std::ranges::none_of(TextLines(text), [](const auto& line) {
           return !line.empty() && line[0] != ' ';
         });
}

// Text for a terminal: commands with their output moved in.
std::string Plain(const LessonPieces& pieces) {
  std::string out;
  for (const LessonPiece& piece : pieces) {
    if (piece.command.empty()) {
      out += piece.text;
      continue;
    }
    out += fmt::format("  $ {}\n", piece.command);
    const std::string_view indent = IsMovedIn(piece.text) ? "" : "  ";
    for (const std::string_view line : TextLines(piece.text)) {
      out += line.empty() ? "\n" : fmt::format("{}{}\n", indent, line);
    }
  }
  return out;
}

std::string Markdown(const LessonPieces& pieces) {
  std::string out;
  for (const LessonPiece& piece : pieces) {
    out += piece.command.empty() ? piece.text
                                 : fmt::format("```text\n$ {}\n{}{}```\n", piece.command,
                                               piece.text, piece.text.ends_with('\n') ? "" : "\n");
  }
  return out;
}

// What the truth is and how near the program comes.
std::string Answer(const LessonText& text) {
  const Lesson& lesson = *text.lesson;
  const std::string truth = WithUnit(lesson, text.truth());
  const std::string answer = WithUnit(lesson, text.answer());
  if (!lesson.choices.empty()) return fmt::format("The answer: {}.\n", truth);
  return fmt::format("The answer: {}, from how the trace was made; daydream says {}.\n", truth,
                     answer);
}

Table ListTable() {
  Table table({{"lesson"}, {"title"}, {"minutes", Align::kRight}});
  for (const Lesson* lesson : examples::Lessons()) {
    table.AddRow(
        {std::string(lesson->id), std::string(lesson->title), fmt::format("{}", lesson->minutes)});
  }
  return table;
}

void WritePieces(JsonWriter& json, std::string_view key, const LessonPieces& pieces) {
  json.Key(key).BeginArray();
  for (const LessonPiece& piece : pieces) {
    json.BeginObject();
    if (!piece.command.empty()) json.Key("command").String(piece.command);
    json.Key("text").String(piece.text).EndObject();
  }
  json.EndArray();
}

void WriteStrings(JsonWriter& json, std::string_view key, const std::vector<std::string>& all) {
  json.Key(key).BeginArray();
  for (const std::string& text : all) json.String(text);
  json.EndArray();
}

void WriteHead(JsonWriter& json, const Lesson& lesson) {
  json.Key("lesson").String(lesson.id).Key("name").String(lesson.name);
  json.Key("title").String(lesson.title).Key("minutes").Int(lesson.minutes);
  json.Key("unit").String(lesson.unit);
}

// A choice by its name.
void WriteValue(JsonWriter& json, const Lesson& lesson, double value) {
  lesson.choices.empty() ? json.Double(value) : json.String(WithUnit(lesson, value));
}

void WriteAnswers(JsonWriter& json, const LessonText& text) {
  const Lesson& lesson = *text.lesson;
  WriteValue(json.Key("truth"), lesson, text.truth());
  WriteValue(json.Key("answer"), lesson, text.answer());
  json.Key("tolerance").Double(lesson.tolerance);
  json.Key("near").Double(lesson.near).Key("slack").Double(lesson.slack);
  json.Key("numbers").BeginObject();
  for (const auto& [name, value] : text.numbers) json.Key(name).Double(value);
  json.EndObject();
  json.Key("wrong_thoughts").BeginArray();
  for (size_t i = 0; i < text.thoughts.size(); ++i) {
    WriteValue(json.BeginObject().Key("value"), lesson,
               text.numbers.at(std::string(lesson.thoughts[i].number)));
    json.Key("text").String(text.thoughts[i]).EndObject();
  }
  json.EndArray();
  WritePieces(json, "solution", text.solution);
  WritePieces(json, "surprise", text.surprise);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The blank of `line` at which to break it, so that `room` columns are left of it: where columns
// end, if that is not too early, else between words; the end of the line: nowhere.
size_t BreakOf(std::string_view line, size_t room) {
  constexpr double kNotTooEarly = 0.4;  // chosen: a line that is shorter looks like a mistake
  size_t blank = line.size(), gap = line.size();
  for (size_t at = line.find_first_not_of(' '); at < line.size(); ++at) {
    if (line[at] != ' ' || line[at - 1] == ' ') continue;
    const size_t columns = DisplayWidth(line.substr(0, at));
    if (columns > room) break;
    const std::string_view next = line.substr(at + 1, line.find(' ', at + 1) - at - 1);
    if (IsDigit(line[at - 1]) && IsUnit(next)) continue;  // a number stays with its unit
    blank = at;
    const bool early = static_cast<double>(columns) < kNotTooEarly * static_cast<double>(room);
    if (line.substr(at).starts_with("  ") && !early) gap = at;
  }
  return gap < line.size() ? gap : blank;
}

// A line of a command's output that is too wide goes on in the next lines: in those of `rest` that
// go on with its text, which are taken from there, else moved in.
std::string Broken(std::string_view first, size_t width, std::string_view& rest) {
  constexpr size_t kMovedIn = 4;
  // A rule is as wide as there is room.
  if (first.find_first_not_of(" -") == first.npos) return std::string(first.substr(0, width));
  std::string line(first), out;
  size_t indent = IndentOf(first) + kMovedIn;
  while (DisplayWidth(line) > width) {
    const size_t blank = BreakOf(line, width);
    if (blank == line.size()) break;  // one long word
    const size_t begin = std::min(line.find_first_not_of(' ', blank), line.size());
    const std::string_view next = rest.substr(0, rest.find('\n'));
    std::string more = line.substr(begin);
    // Text stands below text, which begins further to the right than a label.
    const bool goes_on = IndentOf(next) < next.size() && IndentOf(next) >= indent;
    if (goes_on) {
      indent = IndentOf(next);
      more += ' ' + std::string(next.substr(indent));
      rest.remove_prefix(std::min(next.size() + 1, rest.size()));
    }
    out += line.substr(0, blank) + "\n";
    line = std::string(indent, ' ') + more;
  }
  return out + line;
}

}  // namespace

std::string SeedFlag(const LessonText& text) {
  return text.seed == examples::kLessonSeed ? "" : fmt::format(" --seed {}", text.seed);
}

std::string LessonList() {
  std::string out;
  for (const Lesson* lesson : examples::Lessons()) {
    if (lesson->id == "A") {
      out += fmt::format("\nfaulty traces, some {} minutes more: which finding is this?\n",
                         MinutesOf(true));
    }
    out += fmt::format("  {:>2}  {:<60} {:>2} min\n", lesson->id, lesson->title, lesson->minutes);
  }
  return fmt::format("twelve lessons, some {} minutes in all: guess a number first, then see\n",
                     MinutesOf(false)) +
         out + "\ndaydream tour 1 begins the first one; --seed N gives other numbers.\n";
}

std::string LessonListMarkdown() { return ListTable().Markdown(); }
std::string LessonListCsv() { return ListTable().Csv(); }

std::string LessonListJson() {
  JsonWriter json;
  json.BeginObject().Key("schema").String(kSchema).Key("lessons").BeginArray();
  for (const Lesson* lesson : examples::Lessons()) {
    json.BeginObject();
    WriteHead(json, *lesson);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string LessonOpening(const LessonText& text) {
  return fmt::format("{}\n\n{}\nQuestion. {}{}{}\n", Heading(*text.lesson), Plain(text.story),
                     text.question, text.lesson->choices.empty() ? "\n" : "", Asked(*text.lesson));
}

std::string Reflowed(std::string_view text, size_t width) {
  constexpr std::string_view kPrompt = "  $ ";
  if (width == 0) return std::string(text);
  std::string out;
  size_t column = 0;  // of the paragraph's line that is being filled
  const auto end_line = [&] {
    if (column > 0) out += '\n';
    column = 0;
  };
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const bool last = end == text.npos;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(last ? text.size() : end + 1);
    if (line.empty() || line[0] == ' ') {
      end_line();
      std::string command(line.starts_with(kPrompt) ? line.substr(kPrompt.size()) : "");
      while (command.ends_with('\\')) {  // goes on in the next line
        const size_t more = std::min(text.find('\n'), text.size());
        command += "\n" + std::string(text.substr(0, more));
        text.remove_prefix(std::min(more + 1, text.size()));
      }
      if (!command.empty()) {
        out += FoldedCommand(kPrompt, command, width);
      } else {
        out += Broken(line, width, text);
      }
      if (!last) out += '\n';
      continue;
    }
    while (!line.empty()) {
      const size_t blank = std::min(line.find(' '), line.size());
      const std::string_view word = line.substr(0, blank);
      line.remove_prefix(std::min(blank + 1, line.size()));
      if (column > 0 && column + 1 + DisplayWidth(word) > width) {
        // A number and its unit stay together.
        const size_t number = out.find_last_of(" \n");
        if (IsUnit(word) && number != out.npos && out[number] == ' ' && IsDigit(out.back())) {
          out[number] = '\n';
          column = out.size() - number - 1;
        } else {
          end_line();
        }
      }
      out += column > 0 ? fmt::format(" {}", word) : std::string(word);
      column += DisplayWidth(word) + (column > 0 ? 1 : 0);
    }
    if (last) return out;
  }
  end_line();
  return out;
}

std::string LessonHint(const LessonText& text, size_t hint) {
  return fmt::format("Hint {} of {}. {}\n", hint + 1, text.hints.size(), text.hints[hint]);
}

std::string LessonEnding(const LessonText& text) {
  return fmt::format("{}\n{}\nWhat surprises\n\n{}", Answer(text), Plain(text.solution),
                     Plain(text.surprise));
}

std::string LessonMarkdown(const LessonText& text, bool answers) {
  const Lesson& lesson = *text.lesson;
  std::string out = fmt::format(
      "# {}\n\nAbout {} minutes. The traces are made by the program:\n\n"
      "```sh\ndaydream tour {}{} --save .\n```\n\n",
      Heading(lesson), lesson.minutes, lesson.id, SeedFlag(text));
  out += Markdown(text.story);
  out += fmt::format("\n## Question\n\n{}\n", text.question);
  out += lesson.choices.empty() ? Asked(lesson) + "\n" : "\n```text" + Choices(lesson) + "\n```\n";
  if (!text.hints.empty()) out += "\n## Hints\n\n";
  for (size_t i = 0; i < text.hints.size(); ++i) {
    std::string hint = text.hints[i];
    for (size_t at = 0; (at = hint.find('\n', at)) != std::string::npos; at += 4) {
      hint.replace(at, 1, "\n   ");
    }
    out += fmt::format("{}. {}\n", i + 1, hint);
  }
  if (!answers) return out;
  out += fmt::format("\n## Solution\n\n{}\n{}", Answer(text), Markdown(text.solution));
  if (!text.thoughts.empty()) out += "\n## Usual wrong thoughts\n\n";
  for (size_t i = 0; i < text.thoughts.size(); ++i) {
    std::string thought = text.thoughts[i];
    for (size_t at = 0; (at = thought.find('\n', at)) != std::string::npos; at += 3) {
      thought.replace(at, 1, "\n  ");
    }
    out += fmt::format("* {}: {}\n",
                       WithUnit(lesson, text.numbers.at(std::string(lesson.thoughts[i].number))),
                       thought);
  }
  return out + fmt::format("\n## What surprises\n\n{}", Markdown(text.surprise));
}

std::string LessonJson(const LessonText& text, bool answers) {
  JsonWriter json;
  json.BeginObject().Key("schema").String(kSchema);
  WriteHead(json, *text.lesson);
  json.Key("heading").String(Heading(*text.lesson));
  json.Key("seed").UInt(text.seed);
  WriteStrings(json, "files", text.files);
  WritePieces(json, "story", text.story);
  json.Key("question").String(text.question);
  json.Key("choices").BeginArray();
  for (std::string_view choice : text.lesson->choices) json.String(choice);
  json.EndArray();
  WriteStrings(json, "hints", text.hints);
  if (answers) WriteAnswers(json, text);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace daydream
