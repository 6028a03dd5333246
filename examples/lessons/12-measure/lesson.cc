// A prediction, a measurement that disagrees, and what that teaches.
#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  Loop loop;
  loop.load_ns = Ms(draw.Between(14, 20));
  const int64_t gpu = Ms(draw.Between(22, 30));
  loop.kernels = EqualKernels(6, {"aten::mm", "ampere_sgemm_128x128_nn", gpu});
  DD_ASSIGN_OR_RETURN(const Played before, PlayLoop("lesson12", loop));
  loop.load_ns = Us(100);
  DD_ASSIGN_OR_RETURN(const Played hoped, PlayLoop("lesson12-hoped", loop));
  loop.machine.gpu_percent = draw.Between(115, 130);
  DD_ASSIGN_OR_RETURN(const Played after, PlayLoop("lesson12-after", loop));
  Numbers n = {{"step", before.step_ms}, {"hoped", hoped.step_ms}, {"measured", after.step_ms}};
  n["slower"] = static_cast<double>(loop.machine.gpu_percent - 100);
  n["miss"] = after.step_ms - hoped.step_ms;
  n["kernels"] = after.gpu_ms - before.gpu_ms;
  n["loader"] = n["step"] - n["measured"];
  n["none"] = 0;
  return LessonPlay{{{"lesson12.ddtrace", before.trace}, {"lesson12-after.ddtrace", after.trace}},
                    std::move(n)};
}

constexpr Fact kFacts[] = {
    {"predicted", "whatif lesson12.ddtrace --opt prefetch", "scenarios.1.step_ms"},
    {"answer", "diff lesson12.ddtrace lesson12-after.ddtrace", "groups.0.after_ns",
     "groups.0.before_ns", 1e-6},
};
constexpr WrongThought kThoughts[] = {
    {"none",
     "Then the loader would have to explain the difference. It hands a batch over in a tenth\n"
     "of a millisecond now; there is nothing left of it to explain anything."},
    {"loader",
     "That is what was gained after all. The question is how far the measurement is above the\n"
     "prediction."},
};
constexpr std::string_view kHints[] = {
    "Compare prediction and measurement first. How many milliseconds are missing?",
    "With the loader gone the step is the GPU's work. How long is that in each of the two traces?\n"
    "`daydream tour 12 --save .` writes both, and `daydream summary` says it.",
};

}  // namespace

const Lesson kMeasureLesson = {
    .id = "12",
    .name = "measure",
    .title = "Predict, measure, learn from the difference",
    .minutes = 8,
    .play = Play,
    .facts = kFacts,
    .story = R"(
A step takes {step} ms; the loader has no workers. Daydream predicts {predicted} ms with workers:

$ daydream whatif lesson12.ddtrace --opt prefetch | head -8

The change is made and recorded again: {measured} ms. Better, but slower than predicted. Before you
blame the prediction: is everything else as it was?
)",
    .question = "How many milliseconds more per step do the kernels take in the second recording?",
    .unit = "ms",
    .truth = "kernels",
    .answer = "answer",
    .tolerance = 0.02,
    .slack = 0.2,
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
The same matrix products take {slower} % longer in the second recording:

$ daydream diff lesson12.ddtrace lesson12-after.ddtrace

Nobody changed them. In this lesson the reason is heat: a GPU that rests no more gets warmer and
lowers its clock. The traces show only that the same kernels got slower. The what-if assumed that
kernels keep their time, and they did not. `--measured` compares a prediction with a measurement,
kind of work by kind of work:

$ daydream whatif lesson12.ddtrace --opt prefetch --measured lesson12-after.ddtrace | tail -7

`error` and `miss` are predicted less measured: a minus says that the prediction was too short.
`inside interval` or `OUTSIDE interval`: an interval allows for what predictions of this kind were
off by, and not for a GPU that changes. Whether that still fits into it is luck. The rows of the
table name the miss either way.
)",
    .surprise = R"(
A prediction that is off teaches more than one that fits: it shows which of your beliefs is wrong.
Write the number down before you measure, or you will not notice. `--learn FILE` keeps such
differences; give the file to the next prediction with `--learned FILE`. It then goes a part of the
way, for one measured run is little to learn from. What it learns here is booked against `prefetch`,
though the clock was the reason: learn from pairs in which nothing else has changed.
)",
};

}  // namespace daydream::examples
