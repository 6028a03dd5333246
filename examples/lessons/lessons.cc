#include <algorithm>
#include <cctype>

#include "examples/lessons/lesson.h"

namespace daydream::examples {
namespace {

constexpr const Lesson* kLessons[] = {
#define LESSON(symbol) &symbol,
#include "examples/lessons/lessons.def"
#undef LESSON
};

int ToLower(unsigned char c) { return std::tolower(c); }

bool SameInEitherCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, ToLower, ToLower);
}

}  // namespace

std::span<const Lesson* const> Lessons() { return kLessons; }

const Lesson* FindLesson(std::string_view id) {
  for (const Lesson* lesson : kLessons) {
    if (SameInEitherCase(lesson->id, id) || lesson->name == id) return lesson;
  }
  return nullptr;
}

}  // namespace daydream::examples
