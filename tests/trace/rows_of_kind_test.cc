#include "trace/rows/rows_of_kind.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace daydream {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<size_t> Rows(const std::vector<EventKind>& kinds, EventKind kind) {
  Trace trace;
  trace.kind = kinds;
  trace.start.resize(kinds.size());
  std::vector<size_t> rows;
  for (size_t row : RowsOf(trace, kind)) rows.push_back(row);
  return rows;
}

TEST(RowsOfKind, AreAllOfThemInOrder) {
  using enum EventKind;
  const std::vector<EventKind> kinds = {kSync, kOp, kSync, kSync, kCall, kOp, kSync};
  EXPECT_THAT(Rows(kinds, kSync), ElementsAre(0, 2, 3, 6));
  EXPECT_THAT(Rows(kinds, kOp), ElementsAre(1, 5));
  EXPECT_THAT(Rows(kinds, kCall), ElementsAre(4));
  EXPECT_THAT(Rows(kinds, kKernel), IsEmpty());
}

TEST(RowsOfKind, AnEmptyTraceHasNone) { EXPECT_THAT(Rows({}, EventKind::kOp), IsEmpty()); }

}  // namespace
}  // namespace daydream
