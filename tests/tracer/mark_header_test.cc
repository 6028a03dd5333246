// tracer/daydream_mark.h in a program that is not recorded; mark_header_in_c.c uses it in C.
#include "tracer/daydream_mark.h"

#include <gtest/gtest.h>

extern "C" int UseMarksInC(void);
extern "C" int FindsARecorderAsSetuid(void);

namespace daydream::tracer {
namespace {

TEST(MarkHeader, OutsideOfARecordingMarksAreNothing) {
  unsetenv("DAYDREAM_INJECT");
  EXPECT_EQ(UseMarksInC(), 0);
  daydream_step(1);
  daydream_begin("conv1");
  daydream_end();
  EXPECT_EQ(daydream_find_recorder(), nullptr);
}

// Its caller chose the variables.
TEST(MarkHeader, AProgramWithOtherRightsThanItsCallerLoadsNothing) {
  setenv("DAYDREAM_INJECT", DAYDREAM_INJECTED, 1);
  EXPECT_EQ(FindsARecorderAsSetuid(), 0);
  unsetenv("DAYDREAM_INJECT");
}

}  // namespace
}  // namespace daydream::tracer
