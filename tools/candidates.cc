#include "tools/candidates.h"

#include <algorithm>

#include "tools/scenarios.h"

namespace daydream {
namespace {

// The first parameter without a value, or "".
std::string_view OpenParam(const Transform& t) {
  for (const ParamSpec& spec : t.params) {
    if (spec.required) return spec.name;
  }
  return "";
}

absl::Status CheckExcluded(std::span<const std::string> excluded,
                           std::span<const Transform* const> known) {
  std::vector<std::string_view> names;
  for (const Transform* t : known) names.push_back(t->name);
  for (const std::string& name : excluded) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0102",
                       .what = fmt::format("--exclude: unknown optimization '{}'{}", name,
                                           DidYouMean(name, names)),
                       .fix = "daydream opt list"});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Candidates> FindCandidates(const Args& args, Session& session) {
  OptionFiles files(OptionFolders());
  for (const std::string& path : args.All("--opt-file")) {
    DD_RETURN_IF_ERROR(files.Load(path).status());
  }
  LoadFolders(files, session);
  const std::vector<std::string> excluded = args.All("--exclude");
  std::vector<const Transform*> known(Transforms().begin(), Transforms().end());
  for (const auto& file : files.all()) known.push_back(&file->transform());
  DD_RETURN_IF_ERROR(CheckExcluded(excluded, known));
  Candidates out;
  for (size_t i = 0; i < known.size(); ++i) {
    const Transform& t = *known[i];
    const bool mine = i >= Transforms().size();
    // Without advice it is a verb of modelling, which nobody can switch on.
    if (!mine && !t.bound && t.advice.how.empty()) continue;
    if (std::find(excluded.begin(), excluded.end(), t.name) != excluded.end()) continue;
    if (std::string_view open = OpenParam(t); !open.empty()) {
      if (!t.bound) out.open.push_back(fmt::format("{}({}=...)", t.name, open));
      continue;
    }
    DD_ASSIGN_OR_RETURN(Params params, BindParams(t.name, t.params, {}));
    Application a{&t, std::move(params), mine ? files.all()[i - Transforms().size()] : nullptr};
    (t.bound ? out.limits : out.options).push_back(std::move(a));
  }
  return out;
}

}  // namespace daydream
