// Plays a graph written as text, and writes when its tasks ran.
#pragma once

#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph/validate.h"
#include "simulator/simulate.h"

namespace daydream {

// "0-5 7-47": start and end of every task, in ns.
template <class Simulator>
std::string PlayedBy(std::string_view text, Simulator simulator) {
  const auto g = ParseGraph(text);
  EXPECT_TRUE(g.ok()) << g.status();
  EXPECT_TRUE(Validate(*g).ok()) << Validate(*g);
  const auto timeline = simulator(*g);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  std::string result;
  for (size_t i = 0; i < g->size(); ++i) {
    fmt::format_to(std::back_inserter(result), "{}{}-{}", i == 0 ? "" : " ", timeline->start[i].ns,
                   timeline->end[i].ns);
  }
  return result;
}

}  // namespace daydream
