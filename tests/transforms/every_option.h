// Every optimization as tests and benchmarks ask about it.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// With a value for what is required, as --opt takes it.
inline std::string SpecOf(const Transform& t) {
  const bool required =
      std::any_of(t.params.begin(), t.params.end(), [](const ParamSpec& p) { return p.required; });
  if (!required) return std::string(t.name);
  const std::map<std::string_view, std::string_view> values = {
      {"batch", "x2"},
      {"accumulate", "2"},
      {"layers", "x2"},
      {"hidden", "x2"},
      {"gpu", "H100"},
      {"share", "50%"},
      {"straggler", "0,host=0.5"},
      {"network", "nvlink4"},
      {"local-sgd", "4"},
      {"ddp", "8,fabric=nvlink4"},
      {"zero1", "8,fabric=nvlink4"},
      {"zero2", "8,fabric=nvlink4"},
      {"colocate", DAYDREAM_SOURCE_DIR "/examples/launch-bound-synthetic.ddtrace"}};
  auto it = values.find(t.name);
  return fmt::format("{}({})", t.name, it == values.end() ? "kind:kernel" : it->second);
}

// What `advise` tries: every transform that can be tried as it is, and every limit.
struct Tried {
  std::vector<Application> options, limits;
};

inline Tried EverythingTried() {
  Tried out;
  for (const Transform* t : Transforms()) {
    auto params = BindParams(t->name, t->params, {});
    if (!params.ok() || (t->advice.how.empty() && !t->bound)) continue;
    (t->bound ? out.limits : out.options).push_back({t, *params});
  }
  return out;
}

}  // namespace daydream
