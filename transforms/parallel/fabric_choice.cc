#include "transforms/parallel/fabric_choice.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "costmodel/network/fabric_text.h"
#include "transforms/core/source_text.h"
#include "transforms/core/suggest.h"

namespace daydream {
namespace {

constexpr size_t kMostFabricBytes = 16 << 20;

bool IsFabricFile(std::string_view name) {
  return name.ends_with(".textproto") || name.ends_with(".fabric") || name.ends_with(".txt") ||
         name.find('/') != name.npos;
}

}  // namespace

absl::StatusOr<Fabric> ChooseFabric(std::string_view name) {
  if (name.empty()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0820",
                       .what = "which network joins the ranks?",
                       .why = "what an exchange takes follows from the fabric it goes through",
                       .fix = "fabric=NAME, as in 'ddp(8, fabric=nvlink4)'; `daydream fabric list` "
                              "names those that are known"});
  }
  if (std::optional<Fabric> known = FabricAsked(name)) return *std::move(known);
  if (IsFabricFile(name)) {
    DD_ASSIGN_OR_RETURN(const std::string text,
                        ReadTextFile(std::string(name), kMostFabricBytes,
                                     {.code = "E0821", .what = "the fabric cannot be read"}));
    return FabricOfText(text, name);
  }
  std::vector<std::string_view> names;
  for (const Fabric& fabric : Fabrics()) {
    names.push_back(fabric.name);
    names.insert(names.end(), fabric.aliases.begin(), fabric.aliases.end());
  }
  const std::string_view close = Closest(name, names);
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0820",
       .what = fmt::format("no fabric is called '{}'{}", name,
                           close.empty() ? "" : fmt::format("; did you mean '{}'?", close)),
       .fix = "`daydream fabric list`, or a file that ends in .textproto, .fabric or .txt"});
}

}  // namespace daydream
