// A lesson ready to be shown: played, its commands run, its numbers in place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "examples/lessons/lesson.h"

namespace daydream {

// A paragraph, or a command and what it prints.
struct LessonPiece {
  std::string text;
  std::string command;  // "daydream info lesson1.ddtrace"; empty: a paragraph
};
using LessonPieces = std::vector<LessonPiece>;

struct LessonText {
  const examples::Lesson* lesson = nullptr;
  uint64_t seed = examples::kLessonSeed;
  examples::Numbers numbers;  // what the generator knows and what commands answer
  LessonPieces story, solution, surprise;
  std::string question;
  std::vector<std::string> hints;
  std::vector<std::string> thoughts;  // as in the lesson
  std::vector<std::string> files;     // names

  double truth() const { return numbers.find(lesson->truth)->second; }
  double answer() const { return numbers.find(lesson->answer)->second; }
};

// Plays the lesson, runs its commands on files in a temporary folder, which is gone afterwards, and
// fills in the numbers. Commands whose output is shown need most of the time: some tenths of a
// second. Commands print for a terminal of `width` columns; 0: as into a pipe.
absl::StatusOr<LessonText> PrepareLesson(const examples::Lesson& lesson, uint64_t seed,
                                         size_t width);

// Writes the traces of a lesson into `folder`, which is made if it is not there.
absl::Status SaveTraces(const examples::LessonPlay& play, const std::filesystem::path& folder,
                        bool overwrite);

// "9.24", "150", "2": three digits, whole numbers without a point.
std::string LessonNumber(double value);
// The number with the unit of the lesson; of a choice its text.
std::string WithUnit(const examples::Lesson& lesson, double value);

// Choices that end in a number ("rank 0") are named by it, others by their place from 1.
bool NamedByNumber(const examples::Lesson& lesson);
// The place, from 1, of the choice that is `word` or ends in it ("rank 2" in "2"); 0: none.
int ChoiceOf(const examples::Lesson& lesson, std::string_view word);

// Whether a guess may be 0: where a usual thought leads there. None may be below.
bool MayBeZero(const LessonText& text);
// How far off a guess may be: "10 % or 0.5 ms"; empty for a choice.
std::string RightWithin(const examples::Lesson& lesson);
// Whether a guess counts as right.
bool IsRight(const LessonText& text, double guess);
// How far off the guess is, and which usual thought leads to it.
std::string Judge(const LessonText& text, double guess);

}  // namespace daydream
