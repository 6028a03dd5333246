// Which optimizations a trace can be asked about, and why not the others.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"
#include "report/text/json_writer.h"
#include "tools/session.h"
#include "transforms/core/transform.h"

namespace daydream {

struct Answer {
  const Transform* transform;
  absl::Status status;  // FailedPrecondition: a required parameter, or nothing to change
};

struct Answers {
  std::vector<Answer> tried;
  std::vector<std::string> untried;  // names, where it was told to stop
  size_t all() const { return tried.size() + untried.size(); }
};

// Calls `each(i)` for i from 0 to `count` - 1, until Ctrl-C after the first of them, and tells how
// far it is. Returns how many it called.
size_t TryEach(size_t count, Session& session, const std::function<void(size_t)>& each);
// Warns that `untried` of `all` are missing; what the command ends with.
Exit EndUntried(size_t untried, size_t all, Session& session);

// Tries every optimization that needs no parameter, each on a copy of `graph`.
Answers TryOptimizations(const Graph& graph, Session& session);

// One paragraph of all that can be asked, one a reason of those that cannot, and one of those that
// were not tried.
std::string AnswersText(const Answers& answers);
// "interrupted" and "not_tried", for behind the schema; nothing where all are tried.
void WriteUntried(const Answers& answers, JsonWriter& json);
// "answers".
void WriteAnswers(const Answers& answers, JsonWriter& json);

}  // namespace daydream
