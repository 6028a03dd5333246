// A long kernel beside the critical path: making it faster changes nothing.
#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

constexpr std::string_view kSide = "embedding_lookup_kernel";
constexpr std::string_view kMain = "ampere_sgemm_128x128_nn";

Loop MakeLoop(int64_t main_ns, int64_t side_ns) {
  Loop loop;
  loop.kernels = {
      {"aten::embedding_bag", kSide, side_ns, 1},
      {"aten::mm", kMain, main_ns / 4},
      {"aten::mm", kMain, main_ns / 4},
      {"aten::mm", kMain, main_ns / 4},
      {"aten::mm", kMain, main_ns / 4},
      {.op = "aten::cat", .kernel = "CatArrayBatchedCopy", .ns = Us(300), .waits = true}};
  return loop;
}

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  const int64_t main = Ms(draw.Between(11, 15)), side = Ms(draw.Between(8, 10));
  DD_ASSIGN_OR_RETURN(const Played before, PlayLoop("lesson4", MakeLoop(main, side)));
  DD_ASSIGN_OR_RETURN(const Played after, PlayLoop("lesson4", MakeLoop(main, side / 2)));
  DD_ASSIGN_OR_RETURN(const Played other, PlayLoop("lesson4", MakeLoop(main / 2, side)));
  Numbers n = {{"main", InMs(main)}, {"side", InMs(side)}, {"step", before.step_ms}};
  n["share"] = 100 * n["side"] / before.gpu_ms;
  n["after"] = after.step_ms;
  n["less_half"] = n["step"] - n["side"] / 2;
  n["other"] = other.step_ms;
  n["other_less"] = n["step"] - n["main"] / 2;
  return LessonPlay{{{"lesson4.ddtrace", before.trace}}, std::move(n)};
}

constexpr std::string_view kAsk =
    "whatif lesson4.ddtrace --opt 'speedup(select=kernel:embedding, by=2)'";
constexpr Fact kFacts[] = {
    {"answer", kAsk, "scenarios.1.step_ms"},
    {"other_answer", "whatif lesson4.ddtrace --opt 'speedup(select=kernel:sgemm, by=2)'",
     "scenarios.1.step_ms"},
    {.name = "of_step",  // as its table says
     .command = "summary lesson4.ddtrace --by kernel",
     .path = "groups.1.time_ns",
     .scale = 100,
     .over = "window_ns"},
};
constexpr WrongThought kThoughts[] = {
    {"less_half",
     "You took half of the kernel's time off the step. It runs beside the matrix\n"
     "products, which end later: nobody waits for it."},
};
constexpr std::string_view kHints[] = {
    "Draw the two streams below each other. Which one ends first?",
    "`cat` needs both. When can it begin, before the change and after it?",
};

}  // namespace

const Lesson kCriticalPathLesson = {
    .id = "4",
    .name = "critical-path",
    .title = "The critical path",
    .minutes = 7,
    .play = Play,
    .facts = kFacts,
    .story = R"(
A recommender runs its embedding lookup on a stream of its own (a second queue of GPU work), beside
four matrix products; here neither slows the other down. Then `cat` needs the results of both. The
lookup is one kernel of {side} ms, {share} % of the time of all kernels added up: no other kernel
takes as long. The matrix products take {main} ms together. A step takes {step} ms.

Somebody has written a lookup kernel that is twice as fast.
)",
    .question = "How many milliseconds does a step take with it?",
    .unit = "ms",
    .truth = "after",
    .answer = "answer",
    .tolerance = 0.01,
    .slack = 0.2,
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
`cat` begins when both streams are done. The matrix products end last, before and after the change.
The lookup has time to spare; it is not on the critical path, which is the chain of work and waits
that makes the step as long as it is. In the last line of this table the products (`sgemm` in the
names of their kernels) are made twice as fast instead:

$ daydream whatif lesson4.ddtrace --opt 'speedup(select=kernel:embedding, by=2)' \
    --opt 'speedup(select=kernel:sgemm, by=2)' --no-interval | head -9

The same factor on the matrix products does help, but not by half of their {main} ms: when they
become shorter than the lookup, the lookup is what one waits for, and the step stays at {other} ms.
`daydream causal` prints that as a table: how much shorter the step gets when a quarter, a half, ...
of one kind of work is gone. `bends at` is how many times as fast that work can get before the step
stops getting shorter, and what one waits for from there on. `gemm` are the matrix products, `copy`
is `cat`, and `index` is the lookup; it stands in the last line, for the step hardly notices it.

$ daydream causal lesson4.ddtrace --by kernels --points 4
)",
    .surprise = R"(
The longest single kernel of a profile can be worth nothing, though it runs for {of_step} % of the
step. (Shares of the step add up to more than 100 %, as kernels of two streams run at once.) Look at
the last column, `of critical path`, and not at the time alone:

$ daydream summary lesson4.ddtrace --by kernel | head -12
)",
};

}  // namespace daydream::examples
