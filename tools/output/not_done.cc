#include "tools/output/not_done.h"

#include <fmt/ranges.h>

#include "report/text/format.h"
#include "tools/output/markdown.h"
#include "tools/output/prediction_text.h"

namespace daydream {

namespace {

// `names` stand behind the number of scenarios.
std::string TextWith(const NotDone& missing, std::string_view names) {
  const std::string parts = fmt::format("{}", fmt::join(missing.parts, ", "));
  if (missing.scenarios.empty()) return fmt::format("not done: {}", parts);
  const size_t count = missing.scenarios.size();
  return fmt::format("{} of {} {} not done{}{}{}", FormatCount(count),
                     Plural(missing.asked, "scenario"), count == 1 ? "is" : "are", names,
                     parts.empty() ? "" : (names.empty() ? ", nor " : "; nor "), parts);
}

}  // namespace

std::string NotDoneText(const NotDone& missing) { return TextWith(missing, ""); }

std::string NotDoneNames(const NotDone& missing) {
  constexpr size_t kMostNamed = 8;
  const std::vector<std::string>& all = missing.scenarios;
  std::string names;
  const size_t shown = all.size() <= kMostNamed + 1 ? all.size() : kMostNamed;
  for (size_t i = 0; i < shown; ++i) names += (i == 0 ? ": " : ", ") + Printable(all[i]);
  if (shown < all.size()) names += fmt::format(" and {} more", FormatCount(all.size() - shown));
  return TextWith(missing, names);
}

std::string NotDoneLines(const NotDone& missing) {
  return missing.any() ? Wrapped("interrupted: " + NotDoneNames(missing)) : "";
}

std::string NotDoneMarkdown(const NotDone& missing) {
  return missing.any() ? "\n" + PlainMarkdown("interrupted: " + NotDoneNames(missing)) : "";
}

void WriteNotDone(const NotDone& missing, JsonWriter& json) {
  if (!missing.any()) return;
  json.Key("interrupted").Bool(true);
  WriteTexts("not_done", missing.scenarios, json);
}

Exit EndNotDone(const NotDone& missing, Session& session) {
  session.Warn({.what = "interrupted: " + NotDoneText(missing),
                .effect = "the result holds what is done, and names the rest"});
  return Exit::kInterrupted;
}

}  // namespace daydream
