// A prepared lesson as text for a terminal, as Markdown and as JSON, whole or in part.
#pragma once

#include <string>
#include <string_view>

#include "tools/tour/lesson_text.h"

namespace daydream {

// The list of lessons.
std::string LessonList();
std::string LessonListMarkdown();
std::string LessonListCsv();
std::string LessonListJson();

// What a command line needs for the seed of the lesson: " --seed 7", or nothing.
std::string SeedFlag(const LessonText& text);

// Story and question, as they stand above the prompt.
std::string LessonOpening(const LessonText& text);
std::string LessonHint(const LessonText& text, size_t hint);
// What is right, what the commands say, and what surprises.
std::string LessonEnding(const LessonText& text);

// Paragraphs in lines of at most `width` columns, for narrow terminals; 0 leaves them as they are.
// Lines that begin with a blank, like output of commands, stay.
std::string Reflowed(std::string_view text, size_t width);

// The whole lesson, with the answers or without.
std::string LessonMarkdown(const LessonText& text, bool answers);
std::string LessonJson(const LessonText& text, bool answers);

}  // namespace daydream
