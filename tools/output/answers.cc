#include "tools/output/answers.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/status.h"
#include "report/text/format.h"
#include "tools/output/describe.h"
#include "tools/running/interrupt.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/apply.h"

namespace daydream {
namespace {

// The reason without the name, with which most messages begin.
std::string WhyNot(const Answer& a) {
  std::string why = Printable(DiagnosticOf(a.status).what);
  const std::string name = fmt::format("{}: ", a.transform->name);
  if (why.starts_with(name)) why.erase(0, name.size());
  return why;
}

void Append(std::string_view name, std::string& names) {
  names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
}

}  // namespace

size_t TryEach(size_t count, Session& session, const std::function<void(size_t)>& each) {
  InterruptNote note(session.KeepsDone("optimizations"));
  size_t done = 0;
  for (; done < count && !note.stopped(); ++done) {
    note.Done(done, count);
    session.Progress({.what = "trying optimizations", .done = done, .total = count, .last = true});
    each(done);
  }
  return done;
}

Exit EndUntried(size_t untried, size_t all, Session& session) {
  session.Warn({.what = fmt::format("interrupted: {} of {} are not tried", untried,
                                    Plural(all, "optimization")),
                .effect = "the result holds the others"});
  return Exit::kInterrupted;
}

Answers TryOptimizations(const Graph& graph, Session& session) {
  std::vector<Application> asked;
  for (const Transform* t : Transforms()) {
    const bool asks = std::ranges::any_of(t->params, [](const ParamSpec& p) { return p.required; });
    auto params = BindParams(t->name, t->params, {});
    if (!asks && params.ok()) asked.push_back({t, *std::move(params)});
  }
  Answers answers;
  const size_t tried = TryEach(asked.size(), session, [&](size_t i) {
    Graph copy = graph;
    answers.tried.push_back({asked[i].transform, Apply(asked[i], copy).status()});
  });
  for (const Application& a : std::span(asked).subspan(tried)) {
    answers.untried.emplace_back(a.transform->name);
  }
  return answers;
}

std::string AnswersText(const Answers& answers) {
  std::string yes;
  std::vector<std::pair<std::string, std::string>> no;  // reason, names; in order of appearance
  for (const Answer& a : answers.tried) {
    if (a.status.ok()) {
      Append(a.transform->name, yes);
      continue;
    }
    const std::string why = WhyNot(a);
    auto it = std::ranges::find(no, why, &std::pair<std::string, std::string>::first);
    if (it == no.end()) it = no.insert(no.end(), {why, ""});
    Append(a.transform->name, it->second);
  }
  std::string out = Paragraph("  yes", yes, 7);
  for (const auto& [why, names] : no) {
    out += Paragraph("  no", fmt::format("{}: {}", names, why), 7);
  }
  std::string untried;
  for (const std::string& name : answers.untried) Append(name, untried);
  if (!untried.empty()) out += Paragraph("  interrupted before", untried, 7);
  return out;
}

void WriteUntried(const Answers& answers, JsonWriter& json) {
  if (answers.untried.empty()) return;
  json.Key("interrupted").Bool(true);
  WriteTexts("not_tried", answers.untried, json);
}

void WriteAnswers(const Answers& answers, JsonWriter& json) {
  json.Key("answers").BeginArray();
  for (const Answer& a : answers.tried) {
    json.BeginInlineObject().Key("name").String(a.transform->name);
    json.Key("applies").Bool(a.status.ok());
    if (!a.status.ok()) json.Key("why").String(DiagnosticOf(a.status).what);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace daydream
