// Rule E2d: which operation a stream waited for, where neither a record nor the place of the call
// says it: the last one of some other stream that was launched before the call. Streams are asked
// in the order of their latest launches, and the first that nothing contradicts is taken. A guess
// is a pattern (scope of the call, awaited stream, waiting stream): where one wait of it cannot
// have been, as the awaited operation ended after the waiting one began, none of it was.
//
// A file may hold as many streams as it likes. What a pattern is worth is only looked up where a
// wait asks for it, and a wait asks at most kMostAsked streams.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/builder.h"

namespace daydream {

// Streams that a wait asks before it goes without an answer, beside that of its thread and those
// that made what is read behind it. A GPU runs as many kernels at once (CUDA Programming Guide,
// "Technical Specifications per Compute Capability": 128 resident grids): where so many streams
// were launched to later and are busy, what another was launched before is hardly what was meant.
// No recording at hand has as many streams.
inline constexpr size_t kMostAsked = 128;

// A call that makes a stream wait for another, nothing says for which.
struct UnknownWait {
  Instant at;                  // begin of the call
  uint32_t op = 0;             // launched behind it on the waiting stream; index into Builder::ops
  NameId scope;                // innermost around the call
  LaneId current;              // that its thread launched to last, which is asked first; or none
  std::vector<LaneId> makers;  // made what `op` reads: asked before all others; each once
};

struct EventGuesses {
  std::vector<std::pair<uint32_t, uint32_t>> waits;  // as Builder::event_waits, in no order
  size_t unanswered = 0;  // waits for which there were more streams than were asked
  size_t looks = 0;       // what it cost: streams asked, and operations and waits compared
};

// What each of `waits` was for, as far as there is an answer. REQUIRES: streams of `b` are in place
// (rule G). O((n + W) log n) for n operations and W waits where few guesses are contradicted;
// whatever they are, O(W kMostAsked) streams are asked, and a pattern costs the fewer of the
// operations of its awaited stream and the waits of its waiting one, each with a search.
EventGuesses GuessEvents(const Builder& b, std::vector<UnknownWait> waits);

}  // namespace daydream
