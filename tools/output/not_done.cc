#include "tools/output/not_done.h"

#include <fmt/ranges.h>

#include "report/text/format.h"
#include "tools/output/markdown.h"
#include "tools/output/prediction_text.h"

namespace daydream {

std::string NotDone::Text() const {
  const std::string named = fmt::format("{}", fmt::join(flags, ", "));
  const std::string_view are = flags.size() == 1 ? "is" : "are";
  if (scenarios.empty()) return fmt::format("interrupted: {} {} not done", named, are);
  return fmt::format("interrupted: {} of {} are not done{}", FormatCount(scenarios.size()),
                     Plural(asked, "scenario"),
                     flags.empty() ? "" : fmt::format(", nor {} {}", are, named));
}

namespace {

std::string WithNames(const NotDone& missing) {
  constexpr size_t kMostNamed = 8;
  const std::vector<std::string>& all = missing.scenarios;
  std::string text = missing.Text();
  const size_t shown = all.size() <= kMostNamed + 1 ? all.size() : kMostNamed;
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? ": " : ", ") + Printable(all[i]);
  if (shown < all.size()) text += fmt::format(" and {} more", FormatCount(all.size() - shown));
  return text;
}

}  // namespace

std::string NotDoneLines(const NotDone& missing) {
  return missing.any() ? Wrapped(WithNames(missing)) : "";
}

std::string NotDoneMarkdown(const NotDone& missing) {
  return missing.any() ? "\n" + PlainMarkdown(WithNames(missing)) : "";
}

void WriteNotDone(const NotDone& missing, JsonWriter& json) {
  if (!missing.any()) return;
  json.Key("interrupted").Bool(true);
  WriteTexts("not_done", missing.scenarios, json);
}

Exit EndNotDone(const NotDone& missing, Session& session) {
  session.Warn(
      {.what = missing.Text(), .effect = "the result holds what is done, and names the rest"});
  return Exit::kInterrupted;
}

}  // namespace daydream
