#include "tools/tour/lesson_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "tools/command.h"
#include "tools/input/json_path.h"
#include "tools/running/temporary_folder.h"
#include "tools/tour/terminal_text.h"
#include "trace/ddtrace/writer.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;
using examples::Lesson;
using examples::Numbers;

constexpr size_t kMovedIn = 2;
constexpr double kNearThought = 0.12;
constexpr double kRounding = 1e-9;  // 1.1 - 1 is a little more than 0.1

// "whatif ... | head -9" without its end, which goes to `lines`: 9, or -9 for tail.
std::string WithoutPipe(std::string line, int& lines) {
  for (const auto& [pipe, sign] : {std::pair(" | head -", 1), std::pair(" | tail -", -1)}) {
    const size_t at = line.find(pipe);
    if (at == std::string::npos) continue;
    lines = sign * std::atoi(line.c_str() + at + std::string_view(pipe).size());
    line.resize(at);
  }
  return line;
}

// The first `lines` of a text, the last -`lines`, or all of it for 0.
std::string SomeLines(const std::string& text, int lines) {
  if (lines == 0) return text;
  const std::vector<std::string_view> all = TextLines(text);
  const size_t some = std::min(static_cast<size_t>(std::abs(lines)), all.size());
  const size_t first = lines > 0 ? 0 : all.size() - some;
  std::string out;
  for (size_t i = first; i < first + some; ++i) out.append(all[i]).append("\n");
  while (out.ends_with("\n\n")) out.pop_back();  // where the cut is between two parts
  return out;
}

// Words as a shell splits them; only single quotes and joined lines are known.
std::vector<std::string> Words(std::string_view line) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '\'') {
      quoted = !quoted;
    } else if ((c == ' ' || c == '\\' || c == '\n') && !quoted) {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// Runs a command in this process on the files in `folder`, whose name the text does not hold: all
// that it prints, for a terminal of `width` columns (0: for a pipe).
absl::StatusOr<std::string> RunWords(std::vector<std::string> words, const fs::path& folder,
                                     size_t width) {
  const Command* command = FindCommand(words[0]);
  if (command == nullptr) return absl::InternalError(fmt::format("no command {}", words[0]));
  words.erase(words.begin());
  for (std::string& word : words) {
    if (word.starts_with("lesson")) word = (folder / word).string();
  }
  DD_ASSIGN_OR_RETURN(const Args args, ParseArgs(FlagsOf(*command), words));
  std::string text;
  Session session;
  session.Configure(args);
  session.TellTo({.message = [&](const Diagnostic& d,
                                 Severity severity) { text += FormatDiagnostic(d, severity, {}); },
                  .progress = [] {}});
  session.WriteTo(&text, width);
  const auto exit = command->run(args, session);
  if (!exit.ok()) return exit.status();
  const std::string prefix = folder.string() + "/";
  for (size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
  return text;
}

// What `daydream LINE` prints, in a terminal of `width` columns with rows that fit into it.
absl::StatusOr<std::string> RunLine(std::string_view line, const fs::path& folder,
                                    std::initializer_list<std::string_view> flags,
                                    size_t width = 0) {
  int lines = 0;
  std::vector<std::string> words = Words(WithoutPipe(std::string(line), lines));
  words.insert(words.end(), flags.begin(), flags.end());
  if (lines != 0) words.emplace_back("--quiet");  // notes do not go through the pipe
  DD_ASSIGN_OR_RETURN(const std::string all, RunWords(words, folder, 0));
  if (width > 0) {
    DD_ASSIGN_OR_RETURN(const std::string narrow, RunWords(words, folder, width));
    if (std::string shown = CutAlike(narrow, all, lines); !shown.empty()) return shown;
  }
  return SomeLines(all, lines);
}

// The text with numbers in place of {names}, and what the lesson is called in place of {lesson}.
absl::StatusOr<std::string> Fill(std::string_view text, const Lesson& lesson,
                                 const Numbers& numbers) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('{', at), text.size());
    out += text.substr(at, open - at);
    if (open == text.size()) break;
    const size_t close = text.find('}', open);
    const std::string_view name = text.substr(open + 1, close - open - 1);
    at = close + 1;
    if (name == "lesson") {
      out += lesson.id;
      continue;
    }
    const auto number = numbers.find(name);
    if (number == numbers.end()) {
      return absl::InternalError(fmt::format("lesson {} has no number {}", lesson.id, name));
    }
    out += LessonNumber(number->second);
  }
  while (out.starts_with('\n')) out.erase(0, 1);
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

absl::StatusOr<LessonPieces> Pieces(std::string_view text, const Lesson& lesson,
                                    const Numbers& numbers, const fs::path& folder, size_t width) {
  DD_ASSIGN_OR_RETURN(std::string rest, Fill(text, lesson, numbers));
  LessonPieces pieces(1);
  constexpr std::string_view kPrompt = "$ daydream ";
  for (size_t at = 0; at < rest.size();) {
    const size_t end = std::min(rest.find('\n', at), rest.size());
    std::string line = rest.substr(at, end - at);
    at = end + 1;
    while (line.starts_with(kPrompt) && line.ends_with('\\')) {
      const size_t next = std::min(rest.find('\n', at), rest.size());
      line += "\n" + rest.substr(at, next - at);
      at = next + 1;
    }
    if (!line.starts_with(kPrompt)) {
      pieces.back().text += line + "\n";
      continue;
    }
    DD_ASSIGN_OR_RETURN(std::string output,
                        RunLine(line.substr(kPrompt.size()), folder, {"--color", "never"}, width));
    pieces.push_back({std::move(output), line.substr(2)});
    pieces.emplace_back();
  }
  std::erase_if(pieces, [](const LessonPiece& piece) {
    return piece.command.empty() && piece.text.find_first_not_of('\n') == std::string::npos;
  });
  return pieces;
}

absl::StatusOr<double> NumberAt(const Lesson& lesson, std::string_view json,
                                std::string_view path) {
  DD_ASSIGN_OR_RETURN(const std::string text, AtJsonPath(json, path));
  if (const int place = ChoiceOf(lesson, text); place > 0) return place;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() && *end == '\0') return value;
  return absl::InternalError(fmt::format("lesson {}: '{}' is no number", lesson.id, text));
}

// The number as it is read by people: 17 for 17.0.
double Shown(const Lesson& lesson, double value) {
  return std::strtod(WithUnit(lesson, value).c_str(), nullptr);
}

// A share above `limit` in percent, with as many digits as it takes to see that: "10.2" beside 10.
std::string OffText(double off, double limit) {
  std::string text;
  for (int digits = 0; digits <= 2; ++digits) {
    text = fmt::format("{:.{}f}", 100 * off, digits);
    if (off <= limit || std::strtod(text.c_str(), nullptr) > 100 * limit) break;
  }
  return text;
}

}  // namespace

bool NamedByNumber(const Lesson& lesson) {
  return !lesson.choices.empty() &&
         std::isdigit(static_cast<unsigned char>(lesson.choices[0].back())) != 0;
}

int ChoiceOf(const Lesson& lesson, std::string_view word) {
  // "Rank 1", "rank1", "rank-1" and "#1" are what people write for "rank 1".
  const auto plain = [](std::string_view text) {
    std::string out;
    for (unsigned char c : text) {
      if (std::isalnum(c) != 0) out += static_cast<char>(std::tolower(c));
    }
    return out;
  };
  const bool below = word.starts_with('-') || word.find(" -") != word.npos;  // "-1"
  const std::string wanted = below ? "" : plain(word);
  for (size_t i = 0; i < lesson.choices.size() && !wanted.empty(); ++i) {
    const std::string_view choice = lesson.choices[i];
    const std::string_view last = choice.substr(choice.rfind(' ') + 1);  // all of it without one
    if (plain(choice) == wanted || plain(last) == wanted) return static_cast<int>(i + 1);
  }
  return 0;
}

absl::Status SaveTraces(const examples::LessonPlay& play, const fs::path& folder, bool overwrite) {
  size_t written = 0;
  for (const examples::LessonFile& file : play.files) {
    const fs::path path = folder / file.name;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    DD_ASSIGN_OR_RETURN(const std::string bytes, SerializeDdtrace(*file.trace));
    if (const absl::Status status = WriteFile(path.string(), bytes, overwrite); !status.ok()) {
      Diagnostic d = DiagnosticOf(status);
      d.effect = fmt::format("{} of {} are written", written, Plural(play.files.size(), "file"));
      return MakeStatus(status.code(), std::move(d));
    }
    ++written;
  }
  return absl::OkStatus();
}

absl::StatusOr<LessonText> PrepareLesson(const Lesson& lesson, uint64_t seed, size_t width) {
  LessonText text{.lesson = &lesson, .seed = seed};
  DD_ASSIGN_OR_RETURN(examples::LessonPlay play, lesson.play(seed));
  DD_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Make());
  DD_RETURN_IF_ERROR(SaveTraces(play, folder.path(), false));
  for (const examples::LessonFile& file : play.files) text.files.push_back(file.name);
  text.numbers = std::move(play.numbers);
  std::map<std::string_view, std::string> answers;
  for (const examples::Fact& fact : lesson.facts) {
    std::string& json = answers[fact.command];
    if (json.empty()) {
      DD_ASSIGN_OR_RETURN(json, RunLine(fact.command, folder.path(), {"--format", "json", "-q"}));
      json.erase(0, json.find('{'));  // warnings come before it
    }
    DD_ASSIGN_OR_RETURN(double value, NumberAt(lesson, json, fact.path));
    if (!fact.minus.empty()) {
      DD_ASSIGN_OR_RETURN(const double less, NumberAt(lesson, json, fact.minus));
      value -= less;
    }
    if (!fact.over.empty()) {
      DD_ASSIGN_OR_RETURN(const double over, NumberAt(lesson, json, fact.over));
      value /= over;
    }
    text.numbers[std::string(fact.name)] = value * fact.scale;
  }
  // Output of commands is moved in (tools/tour/lesson_pages.cc).
  const size_t room = width > kMovedIn ? width - kMovedIn : 0;
  const auto pieces = [&](std::string_view words) {
    return Pieces(words, lesson, text.numbers, folder.path(), room);
  };
  DD_ASSIGN_OR_RETURN(text.story, pieces(lesson.story));
  DD_ASSIGN_OR_RETURN(text.question, Fill(lesson.question, lesson, text.numbers));
  for (std::string_view hint : lesson.hints) {
    DD_ASSIGN_OR_RETURN(text.hints.emplace_back(), Fill(hint, lesson, text.numbers));
  }
  for (const examples::WrongThought& thought : lesson.thoughts) {
    DD_ASSIGN_OR_RETURN(text.thoughts.emplace_back(), Fill(thought.text, lesson, text.numbers));
  }
  DD_ASSIGN_OR_RETURN(text.solution, pieces(lesson.solution));
  DD_ASSIGN_OR_RETURN(text.surprise, pieces(lesson.surprise));
  return text;
}

std::string LessonNumber(double value) {
  if (std::fabs(value) < 0.005) return "0";
  if (std::fabs(value) < 1e6 && value == std::round(value)) return fmt::format("{:.0f}", value);
  const int digits = static_cast<int>(std::floor(std::log10(std::fabs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(2 - digits, 0, 2));
}

std::string WithUnit(const Lesson& lesson, double value) {
  if (!lesson.choices.empty()) {
    const auto place = static_cast<size_t>(std::clamp(std::round(value), 1.0, 99.0)) - 1;
    if (place < lesson.choices.size()) return std::string(lesson.choices[place]);
  }
  if (lesson.unit.starts_with("times")) return fmt::format("{:.2f} {}", value, lesson.unit);
  return fmt::format("{} {}", LessonNumber(value), lesson.unit);
}

bool MayBeZero(const LessonText& text) {
  return std::ranges::any_of(text.lesson->thoughts, [&](const examples::WrongThought& thought) {
    return text.numbers.find(thought.number)->second == 0;
  });
}

bool IsRight(const LessonText& text, double guess) {
  const double truth = text.truth();
  if (!text.lesson->choices.empty()) return std::round(guess) == truth;
  // Of the number that is shown as well: beside "1.00" a guess of 1.1 is 10 % off and not more.
  const double shown = Shown(*text.lesson, truth);
  return std::ranges::any_of(std::array{truth, shown}, [&](double right) {
    const double limit = std::max(text.lesson->near * std::fabs(right), text.lesson->slack);
    return std::fabs(guess - right) <= limit * (1 + kRounding);
  });
}

std::string RightWithin(const Lesson& lesson) {
  if (!lesson.choices.empty()) return "";
  std::string out = fmt::format("{:.0f} %", 100 * lesson.near);
  // Factors are near 1 or above, where the share is more.
  if (lesson.unit == "ms") out += fmt::format(" or {} ms, whichever is more", lesson.slack);
  return out;
}

std::string Judge(const LessonText& text, double guess) {
  const Lesson& lesson = *text.lesson;
  const double truth = text.truth();
  std::string out = fmt::format("You said {}. ", WithUnit(lesson, guess));
  if (IsRight(text, guess)) {
    const bool same = !lesson.choices.empty() || Shown(lesson, guess) == Shown(lesson, truth);
    return out +
           fmt::format("Right{}: it is {}.\n",
                       same ? "" : fmt::format(", near enough (within {})", RightWithin(lesson)),
                       WithUnit(lesson, truth));
  }
  out += fmt::format("It is {}", WithUnit(lesson, truth));
  const double thousand = guess / truth / 1000;
  if (lesson.unit == "ms" && std::fabs(thousand - 1) <= lesson.near) {
    out += ": yours is a thousand times as much. Was it in microseconds?";
  } else if (lesson.choices.empty() && std::fabs(truth) > lesson.slack) {
    out += fmt::format(": you are {} % too {}", OffText(std::fabs(guess / truth - 1), lesson.near),
                       guess > truth ? "high" : "low");
  }
  out += ".\n";
  const std::string* nearest = nullptr;
  double least = 0;
  for (size_t i = 0; i < lesson.thoughts.size(); ++i) {
    const double there = text.numbers.find(lesson.thoughts[i].number)->second;
    const double far = std::fabs(guess - there);
    const double limit =
        lesson.choices.empty() ? std::max(kNearThought * std::fabs(there), lesson.slack) : 0.5;
    if (far > limit || (nearest != nullptr && far >= least)) continue;
    nearest = &text.thoughts[i], least = far;
  }
  return nearest == nullptr ? out : out + *nearest + "\n";
}

}  // namespace daydream
