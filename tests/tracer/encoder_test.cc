// What the encoder writes with protozero, parsed by the generated code, is what was put in.
#include "tracer/encoder.h"

#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/written_file.h"
#include "tracer/name_table.h"

namespace daydream::tracer {
namespace {

using ::testing::SizeIs;

uint32_t NoThreadName(uint32_t) { return 0; }

// Takes chunks of `encoder` until it has no news.
void TakeChunks(Encoder& encoder, WrittenFile& file) {
  while (encoder.HasNews()) {
    const EncodedChunk& chunk = encoder.MakeChunk();
    ASSERT_TRUE(file.chunks.emplace_back().ParseFromString(chunk.message));
    ASSERT_LE(chunk.message.size(), kDdtraceMaxRaw);
    const size_t before = file.rows.size();
    written::ReadEvents(file.chunks.back(), file);
    EXPECT_EQ(file.rows.size() - before, chunk.rows);
    EXPECT_EQ(chunk.has_definitions, file.chunks.back().has_definitions());
    for (size_t i = before; i < file.rows.size(); ++i) {
      EXPECT_GE(file.rows[i].start, chunk.first_ns);
      EXPECT_LE(file.rows[i].start + static_cast<int64_t>(file.rows[i].duration), chunk.last_ns);
    }
    encoder.Written();
  }
}

TEST(Encoder, BeyondTheLimitSignaturesKeepTheirKindAlone) {
  Encoder encoder(1, NoThreadName, 10);
  const uint32_t lane = encoder.StreamLane(0, 1, 7);
  for (uint32_t i = 0; i < 100; ++i) {
    Signature kernel{.kind = kKernel};
    kernel.detail[0] = i + 1;
    encoder.Add(
        RowGroup::kDevice,
        {.start = i, .duration = 1, .lane = lane, .signature = encoder.SignatureOf(kernel)});
  }
  WrittenFile file;
  TakeChunks(encoder, file);
  EXPECT_THAT(file.rows, SizeIs(100)) << "all are there";
  EXPECT_THAT(file.signatures, SizeIs(11)) << "ten, and the one that the others share";
  EXPECT_EQ(encoder.reduced_signatures(), 90u);
  EXPECT_EQ(file.rows[9].signature.launch().grid_x(), 10u);
  EXPECT_EQ(file.rows[99].signature.launch().grid_x(), 0u);
  EXPECT_EQ(file.rows[99].signature.kind(), pb::KIND_KERNEL);
}

class RandomRows {
 public:
  explicit RandomRows(uint32_t seed) : random_(seed) {}

  // Mostly small, sometimes any value at all.
  uint64_t Value() {
    switch (random_() % 4) {
      case 0:
        return random_() % 3;
      case 1:
        return random_() % 1000;
      case 2:
        return 0xffffffffu;
      default:
        return random_();
    }
  }
  uint32_t Word() { return static_cast<uint32_t>(Value()); }

  Signature MakeSignature() {
    static constexpr Kind kKinds[] = {kCall,        kKernel,      kMemcpy,   kMemset, kSync,
                                      kEventRecord, kGraphLaunch, kOverhead, kMark};
    Signature s{.kind = kKinds[random_() % std::size(kKinds)],
                .name = names.Intern("name " + std::to_string(random_() % 50))};
    for (const Column column : {kCorrelation, kGraphNode, kFlags}) {
      if (random_() % 2 == 0) s.columns |= 1u << column;
    }
    // Of those that share a word of the row, one.
    static constexpr Column kWords[] = {kBytes, kReturnCode, kDeviceTime, kValue};
    if (random_() % 2 == 0) s.columns |= 1u << kWords[random_() % std::size(kWords)];
    if (random_() % 2 == 0) s.columns |= 1u << (random_() % 2 == 0 ? kGraph : kEvent);
    if ((s.columns >> kGraphNode & 1) == 0 && random_() % 2 == 0) s.columns |= 1u << kEventSync;
    for (uint32_t& word : s.detail) {
      if (random_() % 4 == 0) word = Word() % 100;
    }
    return s;
  }

  Row MakeRow() {
    return {.start = static_cast<int64_t>(Value() >> 2) - (int64_t{1} << 40),
            .duration = Value() >> 2,
            .correlation = Word(),
            .small = Word(),
            .word = Value(),
            .wide = Value(),
            .flags = static_cast<uint16_t>(Value())};
  }

  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }

 private:
  std::mt19937_64 random_;
};

struct Expected {
  Signature signature;
  Row row;
  std::string name;
  int64_t lane_number;
};

void ExpectSame(const WrittenRow& got, const Expected& want) {
  const Signature& s = want.signature;
  EXPECT_EQ(got.name, want.name);
  EXPECT_EQ(static_cast<uint32_t>(got.kind()), s.kind);
  EXPECT_EQ(got.lane.number(), want.lane_number);
  EXPECT_EQ(got.start, want.row.start);
  EXPECT_EQ(got.duration, want.row.duration);
  EXPECT_EQ(got.columns, s.columns);
  const auto has = [&](Column column) { return (s.columns >> column & 1) != 0; };
  const auto word = [&](Column column) { return has(column) ? want.row.word : 0; };
  EXPECT_EQ(got.correlation, has(kCorrelation) ? want.row.correlation : 0);
  EXPECT_EQ(got.bytes, word(kBytes));
  EXPECT_EQ(got.value, word(kValue));
  EXPECT_EQ(static_cast<uint64_t>(got.return_code), word(kReturnCode));
  EXPECT_EQ(static_cast<uint64_t>(got.device_time), word(kDeviceTime));
  EXPECT_EQ(static_cast<uint64_t>(got.graph_node), has(kGraphNode) ? want.row.wide : 0);
  EXPECT_EQ(static_cast<uint64_t>(got.event_sync), has(kEventSync) ? want.row.wide : 0);
  EXPECT_EQ(got.graph, has(kGraph) ? want.row.small : 0);
  EXPECT_EQ(got.event, has(kEvent) ? want.row.small : 0);
  EXPECT_EQ(got.flags, has(kFlags) ? want.row.flags : 0);
  switch (s.kind) {
    case kKernel:
      EXPECT_EQ(got.signature.launch().grid_x(), s.detail[0]);
      EXPECT_EQ(got.signature.launch().max_active_clusters(), s.detail[16]);
      break;
    case kCall:
      EXPECT_EQ(got.signature.api().cbid(), s.detail[1]);
      break;
    case kSync:
      EXPECT_EQ(got.signature.sync().has_stream(), s.detail[1] != 0);
      EXPECT_EQ(got.signature.sync().context(), s.detail[2]);
      break;
    default:
      break;
  }
}

TEST(Encoder, RandomRowsComeBack) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    RandomRows random(seed);
    Encoder encoder(4711, NoThreadName);
    WrittenFile file;
    std::vector<Signature> signatures;
    for (int i = 0; i < 100; ++i) signatures.push_back(random.MakeSignature());
    std::vector<Expected> expected[3];
    std::vector<Expected> all;
    const auto flush = [&] {
      for (auto& group : expected) {
        all.insert(all.end(), group.begin(), group.end());
        group.clear();
      }
      TakeChunks(encoder, file);
    };
    for (int i = 0; i < 2000; ++i) {
      Expected e{signatures[random.Below(100)], random.MakeRow(), "", random.Below(20)};
      e.name = names.Text(e.signature.name);
      const auto number = static_cast<uint32_t>(e.lane_number);
      e.row.lane = number < 10 ? encoder.ThreadLane(number) : encoder.StreamLane(0, 1, number);
      e.row.signature = encoder.SignatureOf(e.signature);
      const uint32_t group = random.Below(3);
      encoder.Add(static_cast<RowGroup>(group), e.row);
      expected[group].push_back(e);
      if (random.Below(500) == 0) flush();
    }
    flush();
    ASSERT_THAT(file.rows, SizeIs(all.size()));
    for (size_t i = 0; i < all.size(); ++i) ExpectSame(file.rows[i], all[i]);
    // Defined once each.
    EXPECT_LE(file.lanes.size(), 20u);
    EXPECT_LE(file.signatures.size(), 100u);
  }
}

TEST(Encoder, IdsOfNothingAreALaneOfTheirOwn) {
  constexpr uint32_t kNone = ~uint32_t{0};
  Encoder encoder(1, NoThreadName);
  const uint32_t stream = encoder.StreamLane(Encoder::kUnknownDevice, kNone, kNone);
  const uint32_t thread = encoder.ThreadLane(kNone);
  EXPECT_NE(stream, thread);
  EXPECT_EQ(encoder.StreamLane(0, kNone, kNone), stream);
  EXPECT_EQ(encoder.ThreadLane(kNone), thread);
}

TEST(Encoder, ManySignaturesKeepTheirIds) {
  Encoder encoder(1, NoThreadName);
  WrittenFile file;
  constexpr uint32_t kMany = 20'000;
  for (uint32_t i = 0; i < kMany; ++i) {
    Signature s{.kind = kKernel};
    s.detail[0] = i;
    const uint32_t id = encoder.SignatureOf(s);
    EXPECT_EQ(id, i);
    EXPECT_EQ(encoder.SignatureOf(s), id);
    encoder.Add(RowGroup::kDevice, {.lane = encoder.ThreadLane(1), .signature = id});
    if (encoder.IsFull()) TakeChunks(encoder, file);
  }
  TakeChunks(encoder, file);
  ASSERT_THAT(file.rows, SizeIs(kMany));
  for (uint32_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(file.rows[i].signature.launch().grid_x(), i);
  }
}

TEST(Encoder, DefinitionsOfALostChunkComeAgain) {
  Encoder encoder(1, NoThreadName);
  WrittenFile file;
  const auto add = [&](const char* name, uint32_t thread) {
    encoder.Add(RowGroup::kMarks,
                {.lane = encoder.ThreadLane(thread),
                 .signature = encoder.SignatureOf({.kind = kMark, .name = names.Intern(name)})});
  };
  add("before", 1);
  TakeChunks(encoder, file);
  add("lost", 2);
  encoder.SetContext(1, 0, 7);
  encoder.AddClock({.monotonic_ns = 5}, 0);
  encoder.MakeChunk();
  EXPECT_EQ(encoder.Lost(), 1u);
  add("after", 2);
  add("lost", 3);
  TakeChunks(encoder, file);
  ASSERT_THAT(file.rows, SizeIs(3));
  EXPECT_EQ(file.rows[0].name, "before");
  EXPECT_EQ(file.rows[1].name, "after");
  EXPECT_EQ(file.rows[1].lane.number(), 2);
  EXPECT_EQ(file.rows[2].name, "lost");
  EXPECT_THAT(file.contexts, SizeIs(1));
  EXPECT_THAT(file.clocks, SizeIs(0));
}

TEST(Encoder, AChunkWithNothingToSayIsNotMade) {
  Encoder encoder(1, NoThreadName);
  EXPECT_FALSE(encoder.HasNews());
  names.Intern("a name that no row has");
  EXPECT_FALSE(encoder.HasNews());
  encoder.SetLosses({.cupti_dropped = 3});
  EXPECT_TRUE(encoder.HasNews());
  WrittenFile file;
  TakeChunks(encoder, file);
  EXPECT_EQ(file.loss.cupti_dropped(), 3u);
}

TEST(Encoder, GraphNodesSayWhereTheyWereMade) {
  Encoder encoder(1, NoThreadName);
  encoder.AddGraphNode({.graph = 3,
                        .type = 0,
                        .node = 0x300000001,
                        .origin_node = 0x200000001,
                        .created_ns = 1500,
                        .thread = 77},
                       1000);
  WrittenFile file;
  TakeChunks(encoder, file);
  ASSERT_THAT(file.graph_nodes, SizeIs(1));
  EXPECT_EQ(file.graph_nodes[0].node(), 0x300000001u);
  EXPECT_EQ(file.graph_nodes[0].origin_node(), 0x200000001u);
  EXPECT_EQ(file.graph_nodes[0].created_ns(), 500);
  EXPECT_EQ(file.lanes.at(file.graph_nodes[0].lane()).number(), 77);
}

}  // namespace
}  // namespace daydream::tracer
