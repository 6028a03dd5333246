#include "examples/lessons/lesson.h"

namespace daydream::examples {
namespace {

constexpr const Lesson* kLessons[] = {
#define LESSON(symbol) &symbol,
#include "examples/lessons/lessons.def"
#undef LESSON
};

}  // namespace

std::span<const Lesson* const> Lessons() { return kLessons; }

const Lesson* FindLesson(std::string_view id) {
  for (const Lesson* lesson : kLessons) {
    if (lesson->id == id || lesson->name == id) return lesson;
  }
  return nullptr;
}

}  // namespace daydream::examples
