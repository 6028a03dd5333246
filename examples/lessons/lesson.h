// A lesson: a small trace whose truth is known, a question to guess first, and what it teaches.
// `daydream tour` runs them. The text holds {names} of numbers instead of numbers: what the
// generator did (LessonPlay) or what a command answers (Fact), so that another seed gives another
// lesson that is as right. Lines of the text that begin with "$ daydream " are run and shown.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "trace/trace.h"

namespace daydream::examples {

using Numbers = std::map<std::string, double, std::less<>>;

struct LessonFile {
  std::string name;  // "lesson3.ddtrace", "lesson10/rank0.ddtrace"
  std::shared_ptr<const Trace> trace;
};

struct LessonPlay {
  std::vector<LessonFile> files;
  Numbers numbers;  // what is true, by how the traces were made
};

// A number that a command answers: where it is in the command's JSON, "scenarios.1.step_ms". Text
// becomes the place of the same text in Lesson::choices, from 1.
struct Fact {
  std::string_view name;
  std::string_view command;  // "whatif lesson3.ddtrace --opt amp"
  std::string_view path;
  std::string_view minus{};  // less the number at this path
  double scale = 1;
  std::string_view over{};  // divided by the number at this path
};

// Who thinks so comes to the value of `number`.
struct WrongThought {
  std::string_view number;
  std::string_view text;
};

struct Lesson {
  std::string_view id;  // "3"; "A" for a faulty trace
  std::string_view name;
  std::string_view title;
  int minutes = 5;
  absl::StatusOr<LessonPlay> (*play)(uint64_t seed) = nullptr;
  std::span<const Fact> facts;
  std::string_view story, question;
  std::string_view unit;                        // "ms", "times"; empty for a choice
  std::span<const std::string_view> choices{};  // the answer is the place of one of these, from 1
  std::string_view truth;                       // the number that is right
  std::string_view answer;                      // the fact in which the program says the same
  double tolerance = 0;  // how far that may be from the truth: a share, or `slack` if this is more
  double near = 0.10;    // a guess this share off counts as right ...
  double slack = 0;      // ... and one that is this far off in the unit
  std::span<const WrongThought> thoughts;
  std::span<const std::string_view> hints;
  std::string_view solution, surprise;
};

inline constexpr uint64_t kLessonSeed = 1;

// The lessons in their order, then the faulty traces.
std::span<const Lesson* const> Lessons();
const Lesson* FindLesson(std::string_view id);  // by id, "a" too, or by name; nullptr: none

// Whole numbers that follow from a seed alone, the same on every machine.
class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed * 7919 + 17) {}
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 random_;
};

#define LESSON(symbol) extern const Lesson symbol;
#include "examples/lessons/lessons.def"
#undef LESSON

}  // namespace daydream::examples
