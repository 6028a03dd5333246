// What a step is: the host loads, the GPU works, and the host waits for the loss.
#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  Loop loop;
  loop.load_ns = Ms(draw.Between(5, 9));
  loop.steps = 24;
  loop.first_ns = Ms(draw.Between(110, 150));
  const int64_t gpu = Ms(draw.Between(10, 16));
  loop.kernels = {{"aten::conv2d", "ampere_sgemm_128x64_nn", gpu / 2},
                  {"aten::mm", "ampere_sgemm_32x128_nt", gpu / 2}};
  DD_ASSIGN_OR_RETURN(const Played played, PlayLoop("lesson1", loop));
  Numbers n = {{"load", InMs(loop.load_ns)}, {"gpu", InMs(gpu)}, {"first", InMs(loop.first_ns)}};
  n["step"] = played.step_ms;
  n["average"] = played.step_ms + n["first"] / loop.steps;
  n["steps"] = loop.steps;
  return LessonPlay{{{"lesson1.ddtrace", played.trace}}, std::move(n)};
}

constexpr Fact kFacts[] = {
    {"answer", "whatif lesson1.ddtrace", "replay.measured_ms"},
};
constexpr WrongThought kThoughts[] = {
    {"gpu",
     "That is the work of the GPU alone, as if the next batch were made meanwhile. But the host\n"
     "waits for the loss at the end of each step: it cannot begin the next batch before."},
    {"average",
     "That is the whole recording divided by its {steps} steps. The first step holds work that\n"
     "happens once; a run of a thousand steps hardly notices it."},
};
constexpr std::string_view kHints[] = {
    "What does the GPU do while the host makes a batch?",
    "`loss.item()` returns when the GPU is done. What can the host not have begun by then?",
};

}  // namespace

const Lesson kStepLesson = {
    .id = "1",
    .name = "step",
    .title = "What a step is",
    .minutes = 5,
    .play = Play,
    .facts = kFacts,
    .story = R"(
This loop was recorded for {steps} steps:

    for batch in loader:         # no workers: made in this process, {load} ms
        loss = model(batch)      # two kernels on the GPU, {gpu} ms together
        total += loss.item()     # reads the loss

(The copy of the batch, the backward pass and the optimizer are left out, to keep it small.)

The first step took {first} ms longer than the others: libraries were loaded.
)",
    .question = "In a run of a thousand steps, how many milliseconds does a step take on average?",
    .unit = "ms",
    .truth = "step",
    .answer = "answer",
    .tolerance = 0.01,
    .slack = 0.5,
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
Host and GPU take turns here. The host makes a batch ({load} ms) while the GPU has nothing to do;
then the GPU works ({gpu} ms) while the host waits in `loss.item()`. So the times add up, and a
little for launching kernels comes on top:

$ daydream info lesson1.ddtrace | head -10

`steps` says which steps count. Here the first one does not, for it takes far longer than the
others; `place` is its number, counted from 0. `step time` is the answer; `replayed` is daydream's
own check of it (lesson 2).

The other lines can be skipped for now. `summary` says where the step goes. Its second line,
`critical path`, tells what held the step up, in shares of it (lesson 4): `data` is the loader,
`comm` what GPUs send each other (lesson 10; here there is one GPU). In the table below it `gemm`
are the two kernels of the model, both of them matrix products inside, and `memcpy` is the loss,
which `item()` copies to the host. `CPU work` and `data` have no GPU time, but are waited for:

$ daydream summary lesson1.ddtrace | head -10
)",
    .surprise = R"(
A step is neither the time of the GPU nor that of the host, and not always the longer of the two.
It is what one has to wait for. Before you ask what to make faster, ask what waits for what.
)",
};

}  // namespace daydream::examples
