// Damaged PyTorch profiler files: a clear error or counted warnings, never a crash or a hang.
#include <random>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include "tests/trace/kineto_text.h"
#include "tests/trace/packed.h"

namespace daydream {
namespace {

// Something like a real file, with every kind of event in it.
std::string SampleFile(size_t rounds) {
  std::vector<std::string> events;
  for (size_t i = 0; i < rounds; ++i) {
    std::string ts = std::to_string(1610366662254362 + i * 100) + ".047";
    std::string id = fmt::format("\"correlation\": {}", i + 1);
    events.push_back(
        Slice("cpu_op", "aten::mm", ts, "12.5",
              fmt::format(R"("Input Dims": [[{}, 4], []], "Sequence number": {})", i, i)));
    events.push_back(Slice("cuda_runtime", "cudaLaunchKernel", ts, "4", id));
    events.push_back(fmt::format(R"({{"ph": "s", "id": {}, "pid": 1, "tid": 2, "ts": {},)"
                                 R"( "cat": "ac2g", "name": "ac2g"}})",
                                 i + 1, ts));
    events.push_back(Slice("kernel", "void gemm<float, \\\"x\\\">(int)", ts, "30",
                           id + R"(, "device": 0, "stream": 7, "grid": [1, 2, 3])"));
  }
  return KinetoFile(events, R"("deviceProperties": [{"id": 0, "name": "A100"}],)");
}

// An import may succeed or fail, but what it returns has to be sound.
void CheckSound(const absl::StatusOr<std::shared_ptr<const Trace>>& trace) {
  if (!trace.ok()) {
    EXPECT_FALSE(DiagnosticOf(trace.status()).code.empty()) << Message(trace.status());
    return;
  }
  const Trace& t = **trace;
  EXPECT_EQ(AccountedFor(t), t.provenance.input_events);
  EXPECT_EQ(t.lane_begin.back(), t.rows());
  for (size_t row = 0; row < t.rows(); ++row) {
    ASSERT_GE(t.start[row].ns, 0);
    ASSERT_GE(t.duration[row].ns, 0);
    ASSERT_GE(t.End(row), t.start[row]);
  }
}

TEST(ImportDamage, OneDefectCostsAtMostOneEvent) {
  struct Case {
    const char* defect;
    std::string event;
    size_t rows;
  };
  const std::vector<Case> cases = {
      {"unescaped quote", Slice("cpu_op", "say \"hi\" now", "2", "1"), 2},
      {"one unescaped quote", Slice("cpu_op", "5\" disk", "2", "1"), 2},
      {"unescaped quote in an argument", Slice("cpu_op", "x", "2", "1", R"("a": ["5" disk", "b"])"),
       2},
      {"control character", Slice("cpu_op", "a\x01 b", "2", "1"), 3},
      {"raw newline", Slice("cpu_op", "a\nb", "2", "1"), 3},
      {"Windows path", Slice("cpu_op", "C:\\Users\\me", "2", "1"), 3},
      {"N/A", Slice("cpu_op", "x", "2", "1", R"("a": N/A, "b": nan, "c": -inf)"), 3},
      {"invalid UTF-8", Slice("cpu_op", "a\xff\xfe", "2", "1"), 3},
      {"missing colon", R"({"ph": "X", "cat" "cpu_op", "ts": 1})", 2},
      {"missing comma", R"({"ph": "X" "cat": "cpu_op", "ts": 1})", 2},
      {"number for an event", "17", 2},
      {"text for an event", "\"x\"", 2},
  };
  const std::string good1 = Slice("cpu_op", "first", "1", "1"),
                    good2 = Slice("cpu_op", "last", "9", "1");
  for (const Case& c : cases) {
    auto trace = ImportText(KinetoFile({good1, c.event, good2}));
    ASSERT_TRUE(trace.ok()) << c.defect << ": " << Message(trace.status());
    EXPECT_EQ((*trace)->rows(), c.rows) << c.defect;
    EXPECT_EQ((*trace)->EventName(0), "first") << c.defect;
    EXPECT_EQ((*trace)->EventName((*trace)->rows() - 1), "last") << c.defect;
    EXPECT_EQ(AccountedFor(**trace), 3u) << c.defect;
  }
}

TEST(ImportDamage, TrailingCommasAndMissingEndsLoseNothing) {
  const std::string a = Slice("cpu_op", "a", "1", "1");
  for (const std::string& text :
       {"{\"traceEvents\": [" + a + "," + a + ",]}", "{\"traceEvents\": [" + a + ",,\n" + a + "]",
        "{\"traceEvents\": [" + a + "," + a, "[" + a + "," + a + ","}) {
    auto trace = ImportText(text);
    ASSERT_TRUE(trace.ok()) << text;
    EXPECT_EQ((*trace)->rows(), 2u) << text;
  }
  auto cut = ImportText("{\"traceEvents\": [" + a + "," + a.substr(0, a.size() - 9));
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(CountOf(**cut, "events cut off"), 1u);
  EXPECT_EQ(CountOf(**cut, "end of file missing"), 1u);
}

TEST(ImportDamage, ATruncatedFileGivesItsCompleteEvents) {
  const std::string text = SampleFile(500), packed = Gzip(text);
  std::mt19937_64 random(11);
  size_t best = 0;
  for (int i = 0; i < 1000; ++i) {
    auto plain = ImportBytes(std::string_view(text).substr(0, random() % text.size()), "t");
    CheckSound(plain);
    if (plain.ok()) best = std::max(best, (*plain)->rows());
    CheckSound(ImportBytes(std::string_view(packed).substr(0, random() % packed.size()), "t"));
  }
  EXPECT_GT(best, 1400u);
  auto cut = ImportBytes(std::string_view(packed).substr(0, packed.size() - 100), "t");
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(CountOf(**cut, "end of file missing"), 1u);
}

TEST(ImportDamage, FlippedBytesAreSurvived) {
  const std::string text = SampleFile(100), packed = Gzip(text);
  std::mt19937_64 random(12);
  for (int i = 0; i < 2000; ++i) {
    std::string bad = i % 2 == 0 ? text : packed;
    for (size_t flips = 1 + random() % 8; flips > 0; --flips) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    CheckSound(ImportBytes(bad, "t"));
    CheckSound(ImportBytes(bad, "t", {.max_malformed = 1.0}, "kineto"));
  }
}

TEST(ImportDamage, EventsBehindDamageAreFoundAgain) {
  std::string text = SampleFile(500);
  size_t middle = text.find("{\"ph\"", text.size() / 2);
  text.replace(middle + 30, 200, 200, '"');
  auto trace = ImportText(text);
  ASSERT_TRUE(trace.ok()) << Message(trace.status());
  EXPECT_GT((*trace)->rows() + CountOf(**trace, "flow events"), 1994u);
}

TEST(ImportDamage, HostileTextEndsSoon) {
  std::string nested = "{\"traceEvents\": [", unclosed = nested, quotes = nested;
  for (int i = 0; i < 200000; ++i) {
    nested += ",{\"ph\":[";
    unclosed += ",{\"name\":\"";
    quotes += ",{\"ph\":\"X\",\"args\":{\"a\":[\"";
  }
  for (const std::string& text : {nested, unclosed, quotes, std::string(1 << 22, '['),
                                  std::string(1 << 22, '{'), "[" + std::string(1 << 22, ',')}) {
    CheckSound(ImportText(text));
    CheckSound(ImportText(text, {.max_malformed = 1.0}));
  }
}

TEST(ImportDamage, ABombIsRefusedWithLittleMemory) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  std::string block;
  const std::string event = Slice("cpu_op", "a", "1", "1") + ",";
  while (block.size() < (1 << 20)) block += event;
  const std::string bomb = Gzip("[") + Gzip(std::string(1 << 20, ' '), 10 << 10);  // 10 GB
  auto trace = ImportBytes(bomb, "bomb.json.gz");
  EXPECT_EQ(DiagnosticOf(trace.status()).code, "E0207");
  EXPECT_EQ(
      DiagnosticOf(ImportBytes(Gzip("[" + block, 64), "t", {.max_text_bytes = 10 << 20}).status())
          .code,
      "E0207");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 200 << 10);
}

}  // namespace
}  // namespace daydream
