#include "graph/event_guesses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>

#include "tests/graph/built_sketch.h"

namespace daydream {
namespace {

using Waits = std::vector<std::pair<uint32_t, uint32_t>>;

// As far as guesses need it.
std::unique_ptr<Builder> Begun(TraceSketch& sketch) {
  auto b = std::make_unique<Builder>(sketch.Build(), BuildOptions{});
  AddHostThreads(*b);
  AddStreams(*b);
  return b;
}

// All streams are candidates of all waits, in the order of preference; a pattern that one of them
// contradicts is none.
struct Pattern {
  NameId scope;
  LaneId source, target;
  friend auto operator<=>(const Pattern&, const Pattern&) = default;
};
struct Candidate {
  Pattern pattern;
  uint32_t from = 0;
  bool made = false;
  int64_t launched = 0;
};

Waits GuessSlowly(const Builder& b, const std::vector<UnknownWait>& waits) {
  std::vector<std::vector<Candidate>> candidates(waits.size());
  std::map<Pattern, bool> refuted;
  for (size_t i = 0; i < waits.size(); ++i) {
    const UnknownWait& w = waits[i];
    for (size_t lane = 0; lane < b.stream_ops.size(); ++lane) {
      if (LaneId(lane) == b.ops[w.op].lane) continue;
      uint32_t from = Builder::kNone;
      for (const uint32_t op : b.stream_ops[lane]) {
        if (b.ops[op].call_start < w.at) from = op;
      }
      if (from == Builder::kNone) continue;
      const bool is_current = LaneId(lane) == w.current;
      candidates[i].push_back({.pattern = {w.scope, LaneId(lane), b.ops[w.op].lane},
                               .from = from,
                               .made = std::ranges::find(w.makers, LaneId(lane)) != w.makers.end(),
                               .launched = is_current ? INT64_MAX : b.ops[from].call_start.ns});
      bool& is_refuted = refuted[candidates[i].back().pattern];
      is_refuted |= b.ops[from].end > b.ops[w.op].start + kGranularity;
    }
    std::ranges::stable_sort(candidates[i], [](const Candidate& x, const Candidate& y) {
      return std::tie(x.made, x.launched) > std::tie(y.made, y.launched);
    });
  }
  Waits found;
  for (size_t i = 0; i < waits.size(); ++i) {
    const auto best = std::ranges::find_if(
        candidates[i], [&](const Candidate& c) { return !refuted.at(c.pattern); });
    if (best != candidates[i].end()) found.emplace_back(waits[i].op, best->from);
  }
  return found;
}

std::vector<LaneId> SomeOf(const std::vector<LaneId>& streams, std::mt19937& random) {
  std::vector<LaneId> some;
  for (const LaneId lane : streams) {
    if (random() % 4 == 0) some.push_back(lane);
  }
  return some;
}

// Two threads launch to a few streams; work may overlap, wait long, and share an instant or a call.
std::unique_ptr<Builder> RandomWork(std::mt19937& random, std::vector<LaneId>& streams) {
  TraceSketch s;
  const LaneId threads[] = {s.Thread(100), s.Thread(200)};
  for (size_t i = 0, n = 2 + random() % 7; i < n; ++i) streams.push_back(s.Stream(7 + i));
  const uint32_t longest = random() % 2 == 0 ? 20 : 400;
  for (size_t i = 0, n = 10 + random() % 60; i < n; ++i) {
    const size_t round = i / 2;
    const double at = 10.0 * static_cast<double>(round) + 1;
    const double behind = 4 + static_cast<double>(random() % longest) / 8;
    const uint32_t correlation = 1 + static_cast<uint32_t>(i);
    s.Call(threads[i % 2], "cudaLaunchKernel", at, 3, correlation);
    for (size_t k = 0, kernels = random() % 8 == 0 ? 2 : 1; k < kernels; ++k) {
      s.Kernel(streams[random() % streams.size()], "k", at + behind, 1 + random() % longest,
               random() % 16 == 0 ? 0 : correlation);
    }
  }
  return Begun(s);
}

TEST(EventGuesses, AreThoseOfAskingEveryStreamForEveryWait) {
  size_t guesses = 0, kept_back = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<LaneId> streams;
    const std::unique_ptr<Builder> b = RandomWork(random, streams);
    const uint32_t makers_in = 1 + random() % 3;
    std::vector<UnknownWait> waits;
    for (size_t i = 0, n = 1 + random() % 60; i < n; ++i) {
      const auto op = static_cast<uint32_t>(random() % b->ops.size());
      const bool known = random() % 4 != 0;
      waits.push_back(
          {.at = b->ops[op].call_start - Duration::Us(static_cast<int64_t>(random() % 12)),
           .op = op,
           .scope = NameId(random() % 2),
           .current = known ? streams[random() % streams.size()] : LaneId::None(),
           .makers = i % makers_in == 0 ? SomeOf(streams, random) : std::vector<LaneId>()});
    }
    Waits slow = GuessSlowly(*b, waits);
    EventGuesses found = GuessEvents(*b, waits);
    std::ranges::sort(slow);
    std::ranges::sort(found.waits);
    ASSERT_EQ(found.waits, slow);
    EXPECT_EQ(found.unanswered, 0u);
    guesses += slow.size();
    kept_back += waits.size() - slow.size();
  }
  EXPECT_GT(guesses, 2000u);
  EXPECT_GT(kept_back, 500u) << "and some are contradicted throughout";
}

// a and b launch before "first" and "second" of c. b is the later launch, and is busy when "first"
// begins, so that no wait of c in that scope was for b.
TEST(EventGuesses, APatternThatOneWaitContradictsIsNoneOfTheOthersEither) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), a = s.Stream(7), b = s.Stream(8), c = s.Stream(9);
  s.Launch(cpu, a, "a1", 0, 1, 2, 3);
  s.Launch(cpu, b, "b1", 2, 1, 4, 50);
  s.Launch(cpu, c, "first", 10, 1, 20, 5);
  s.Launch(cpu, b, "b2", 60, 1, 62, 3);
  s.Launch(cpu, c, "second", 70, 1, 80, 5);
  const std::unique_ptr<Builder> built = Begun(s);
  const auto op = [&](uint32_t nth, LaneId lane) { return built->stream_ops[lane.index()][nth]; };
  const auto wait = [&](double at, uint32_t waiting, uint32_t scope) {
    return UnknownWait{.at = Instant::AtNs(static_cast<int64_t>(at * 1000)),
                       .op = waiting,
                       .scope = NameId(scope),
                       .current = {},
                       .makers = {}};
  };
  const UnknownWait first = wait(9, op(0, c), 0), second = wait(69, op(1, c), 0);
  EXPECT_EQ(GuessEvents(*built, {second}).waits, (Waits{{op(1, c), op(1, b)}})) << "alone";
  EXPECT_EQ(GuessEvents(*built, {first, second}).waits,
            (Waits{{op(0, c), op(0, a)}, {op(1, c), op(0, a)}}));
  EXPECT_EQ(GuessEvents(*built, {first, wait(69, op(1, c), 1)}).waits,
            (Waits{{op(0, c), op(0, a)}, {op(1, c), op(1, b)}}))
      << "another scope is another pattern";
}

// Each of `streams` waits for the one before it, in turn, `rounds` times. Times begin at 0.
TraceSketch Ring(size_t streams, size_t rounds) {
  TraceSketch s;
  const LaneId cpu = s.Thread();
  std::vector<LaneId> lanes;
  for (size_t i = 0; i < streams; ++i) lanes.push_back(s.Stream(static_cast<int64_t>(i)));
  double now = 0;
  for (size_t i = 0; i < streams * rounds; ++i, now += 10) {
    s.Call(cpu, "cudaStreamWaitEvent", now, 1);
    s.Launch(cpu, lanes[i % streams], "k", now + 2, 2, now + 6, 5);
  }
  return s;
}

std::vector<UnknownWait> OneBeforeEach(const Builder& b, LaneId main = {}) {
  std::vector<UnknownWait> waits;
  for (uint32_t op = 0; op < b.ops.size(); ++op) {
    if (main.valid() && b.ops[op].lane != main) continue;
    waits.push_back({.at = b.ops[op].call_start - Duration::Us(2),
                     .op = op,
                     .scope = {},
                     .current = {},
                     .makers = {}});
  }
  return waits;
}

size_t LooksOfRing(size_t streams, size_t rounds) {
  TraceSketch s = Ring(streams, rounds);
  const std::unique_ptr<Builder> b = Begun(s);
  const EventGuesses found = GuessEvents(*b, OneBeforeEach(*b));
  EXPECT_EQ(found.waits.size(), rounds * streams - 1) << "the first has nothing to wait for";
  EXPECT_EQ(found.unanswered, 0u);
  return found.looks;
}

TEST(EventGuesses, TwiceTheStreamsAreTwiceTheLooks) {
  const size_t few = LooksOfRing(500, 3);
  EXPECT_LE(few, 500u * 3 * 4);
  EXPECT_LE(LooksOfRing(1000, 3), 2 * few + 8);
}

TEST(EventGuesses, TwiceTheWaitsOfTheSameStreamsAreTwiceTheLooks) {
  const size_t few = LooksOfRing(2, 500);
  EXPECT_LE(few, 500u * 2 * 4);
  EXPECT_LE(LooksOfRing(2, 1000), 2 * few + 8);
}

// All waits are of one stream, for each of the others in turn.
TEST(EventGuesses, AStreamThatWaitsForManyOthersLooksAtEachOfTheirOperationsOnce) {
  const auto looks = [](size_t streams) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), main = s.Stream(7);
    for (size_t i = 0; i < streams; ++i) {
      const double now = 20.0 * static_cast<double>(i);
      s.Launch(cpu, s.Stream(static_cast<int64_t>(100 + i)), "side", now, 2, now + 3, 5);
      s.Launch(cpu, main, "main", now + 6, 2, now + 10, 5);
    }
    const std::unique_ptr<Builder> b = Begun(s);
    const EventGuesses found = GuessEvents(*b, OneBeforeEach(*b, main));
    EXPECT_EQ(found.waits.size(), streams);
    return found.looks;
  };
  EXPECT_LE(looks(500), 500u * 4);
  EXPECT_LE(looks(1000), 1000u * 4);
}

TEST(EventGuesses, AWaitAsksAsManyStreamsAsAGpuRunsKernels) {
  for (const size_t busy : {kMostAsked, kMostAsked + 1}) {
    TraceSketch s;
    const LaneId cpu = s.Thread(), rest = s.Stream(1);
    s.Launch(cpu, rest, "at rest", 0, 1, 2, 3);
    for (size_t i = 0; i < busy; ++i) {
      const double now = 10.0 * static_cast<double>(1 + i);
      s.Launch(cpu, s.Stream(static_cast<int64_t>(10 + i)), "busy", now, 1, now + 2, 1e6);
    }
    s.Call(cpu, "cudaStreamWaitEvent", 10'000, 1);
    s.Launch(cpu, s.Stream(2), "waits", 10'002, 1, 10'005, 3);
    const BuiltGraph built = Build(s);
    const bool all_asked = busy == kMostAsked;
    EXPECT_EQ(built.report.event_waits, all_asked ? 1u : 0u);
    ASSERT_EQ(built.report.warnings.size(), all_asked ? 0u : 1u);
    for (const std::string& warning : built.report.warnings) {
      EXPECT_NE(warning.find("left out: 1. The 128"), std::string::npos) << warning;
    }
  }
}

}  // namespace
}  // namespace daydream
