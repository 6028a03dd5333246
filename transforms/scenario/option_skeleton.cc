// What `daydream opt new NAME` prints.
#include <fmt/format.h>

#include "transforms/scenario/option_file.h"

namespace daydream {

std::string OptionFileSkeleton(std::string_view name) {
  constexpr std::string_view kText =
      R"(# An optimization of your own. docs/optimization-files.md explains the format.
daydream: 1                        # version of the format
name: NAME
summary: What changes, in one line
# needs: [shapes, module_names]    # refuse traces that lack these

params:                            # $factor below; --opt 'NAME(factor=3)' changes it
  factor: {default: 2, low: 1.5, high: 3, unit: x, source: "where this number comes from"}

define:                            # names for selectors
  slow: {kind: kernel, where: 'time > 20us'}
  # more keys: kernel, op, module, category, phase, stream, dtype, shape, direction, memory, ...

steps:                             # from top to bottom; later steps see what earlier ones did
  - select: slow
    scale: {time: '1 / $factor'}
  # - select: {kind: memcpy, direction: h2d, memory: pageable}
  #   set: {time: 'bytes / 24GB/s', memory: pinned}
  #   unblock: host
  # - fuse:
  #     select: {kind: kernel, op: layer_norm}
  #     group_by: [step, op]
  #     into: {name: fused_norm, category: norm, time: 'max(time)'}

checks:                            # matching nothing is an error, not a gain of 1.00x
  - {expect: matched, of: slow, at_least: 1}
)";
  std::string text(kText);
  for (size_t at = 0; (at = text.find("NAME", at)) != std::string::npos; at += name.size()) {
    text.replace(at, 4, name);
  }
  return text;
}

}  // namespace daydream
