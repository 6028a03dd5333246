// Pageable copies hold the host up; pinned ones run beside it.
#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

constexpr int64_t kMegabyte = 1'000'000;

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  TransformerProgram program;
  program.machine.seed = seed;
  // The copy is hidden behind the launches, at 5 GB/s, too.
  program.size.layers = draw.Between(4, 5);
  program.image_bytes = draw.Between(18, 25) * kMegabyte;
  DD_ASSIGN_OR_RETURN(const Played before, PlayTransformer("lesson6", program));
  program.pinned = true;
  DD_ASSIGN_OR_RETURN(const Played after, PlayTransformer("lesson6", program));
  program.image_bytes = 0;
  DD_ASSIGN_OR_RETURN(const Played without, PlayTransformer("lesson6", program));
  Numbers n = {{"step", before.step_ms}, {"after", after.step_ms}};
  n["without"] = without.step_ms;
  n["copy"] = before.step_ms - without.step_ms;
  n["pageable_rate"] = kPageableBytesPerUs / 1e3;  // GB/s
  n["pinned_rate"] = kPinnedBytesPerUs / 1e3;
  n["half"] = before.step_ms - n["copy"] / 2;
  return LessonPlay{{{"lesson6.ddtrace", before.trace}}, std::move(n)};
}

constexpr Fact kFacts[] = {
    {"answer", "whatif lesson6.ddtrace --opt pin-memory", "scenarios.1.step_ms"},
    {"at_5", "whatif lesson6.ddtrace --opt 'pin-memory(rate=5GB/s)'", "scenarios.1.step_ms"},
};
constexpr WrongThought kThoughts[] = {
    {"half",
     "Pinned copies are about twice as fast, so you took half of the copy off. But a pinned\n"
     "copy also lets the host go on: it launches the step while the bytes are on their way."},
    {"step", "Something is gained: the host no longer stands still during the copy."},
};
constexpr std::string_view kHints[] = {
    "What does the host do during a copy from pageable memory? And from pinned memory?",
    "This program is bound by its launches: the GPU has time for a copy beside them.",
};

}  // namespace

const Lesson kPinnedLesson = {
    .id = "6",
    .name = "pinned-memory",
    .title = "Pageable and pinned memory",
    .minutes = 7,
    .play = Play,
    .facts = kFacts,
    .story = R"(
A small transformer, bound by its launches, also gets a batch of images in each step. They are
copied with `images.cuda()` from ordinary, pageable memory. The copy takes {copy} ms of a step of
{step} ms. Pinned memory is memory that the system may not move, so that the GPU can read it by
itself. The change is two lines: `pin_memory=True` for the DataLoader, and
`images.cuda(non_blocking=True)`. A pinned copy runs at {pinned_rate} GB/s here, a pageable one at
{pageable_rate}.
)",
    .question = "How many milliseconds does a step take with pinned memory?",
    .unit = "ms",
    .truth = "after",
    .answer = "answer",
    .tolerance = 0.05,
    .slack = 0.3,
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
A copy from pageable memory goes through a buffer of the driver: the call returns when nearly all
bytes have left. A pinned copy is put into the queue like a kernel. The host goes on launching, and
the copy runs beside that:

$ daydream whatif lesson6.ddtrace --opt pin-memory | head -18

In the table of causes `work` is how much less time the tasks themselves take, and `step` how much
shorter the step gets by it. Nearly all of the {copy} ms is gone, though the bytes still need about
half of that to arrive. (Daydream does not know the {pinned_rate} GB/s. It estimates the rate from
the pageable copies, so that its {answer} ms may be a little off.)
)",
    .surprise = R"(
The gain is that nobody stands still for the copy. How fast it is hardly matters as long as it is
hidden behind the launches. Were pinned copies hardly faster than pageable ones, with 5 GB/s instead
of {pinned_rate}, the step would take {at_5} ms. The table above gives a part of the gain to the
rate all the same: either change alone would shorten the step, and it splits what both gain between
them. On a program bound by the GPU it is the other way round: the first kernel waits for its data
in both cases, and only a faster copy helps.

$ daydream whatif lesson6.ddtrace --opt 'pin-memory(rate=5GB/s)' --no-interval | head -8
)",
};

}  // namespace daydream::examples
