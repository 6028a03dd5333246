// Any bytes as one of the small text files that the program reads, chosen by the first byte: the
// journal of a sweep, learned residuals, a GPU's description in two formats, a table of rates, an
// execution trace. What was read writes and reads back alike.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <unistd.h>

#include "base/check.h"
#include "report/predict/learned.h"
#include "report/questions/sweep.h"
#include "trace/join/execution_trace.h"
#include "trace/trace_builder.h"
#include "transforms/analysis/device_choice.h"
#include "transforms/analysis/rate_samples.h"

namespace daydream {
namespace {

void CheckCode(const absl::Status& status, std::string_view code) {
  DD_CHECK(status.ok() || DiagnosticOf(status).code.starts_with(code));
}

// With the checksums that its lines should have.
std::string Sealed(std::string_view text) {
  std::string out;
  uint64_t seal = 0;  // of rows, once the head has ended
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) {
      out += "\n";
      if (ParseSweep(out, "fuzz").ok()) seal = SealOfRows(out);
    } else {
      out += out.empty() ? std::string(line) + "\n" : SealLine(line, seal);
    }
  }
  return out;
}

void Journal(std::string_view lines) {
  CheckCode(ParseSweep(lines, "fuzz").status(), "E0703");
  const std::string text = Sealed(lines);
  const auto read = ParseSweep(text, "fuzz");
  CheckCode(read.status(), "E0703");
  if (!read.ok()) return;
  DD_CHECK(read->whole <= text.size());
  std::string again = FormatSweepHead(read->head);
  const uint64_t seal = SealOfRows(again);
  for (const SweepRow& row : read->rows) again += SealLine(FormatSweepRow(row), seal);
  const auto second = ParseSweep(again, "fuzz");
  // Control characters become spaces once; from then on nothing changes.
  DD_CHECK(second.ok() && second->rows.size() == read->rows.size());
  std::string third = FormatSweepHead(second->head);
  const uint64_t same = SealOfRows(third);
  for (const SweepRow& row : second->rows) third += SealLine(FormatSweepRow(row), same);
  DD_CHECK(third == again);
}

void Learned(std::string_view text) {
  const auto rows = ParseLearned(text, "fuzz");
  CheckCode(rows.status(), "E0110");
  if (!rows.ok()) return;
  std::string again(kLearnedHeader);
  again += "\n";
  for (const LearnedRow& row : *rows) again += FormatLearnedRow(row) + "\n";
  DD_CHECK(ParseLearned(again, "fuzz").ok());
  for (const LearnedRow& row : *rows) {
    const Correction c = CorrectionFor(*rows, row.opts, row.device, 0.1);
    DD_CHECK(c.share == c.share && c.sigma >= 0);
  }
}

// Written to a file, since that is what it is read from.
void ExecutionTrace(std::string_view text) {
  static const std::shared_ptr<const Trace> trace = [] {
    TraceBuilder builder;
    const LaneId lane = builder.AddLane(LaneKind::kThread, 1, 1, -1);
    for (const char* name : {"aten::mm", "aten::add", "aten::mm"}) {
      builder.AddEvent({.start = Instant{100},
                        .duration = Duration::Ns(10),
                        .lane = lane,
                        .name = builder.names().Intern(name),
                        .kind = EventKind::kOp,
                        .detail = builder.AddOp({})});
    }
    return *builder.Build();
  }();
  static const std::string path = "/tmp/daydream_fuzz_" + std::to_string(getpid());
  std::FILE* file = std::fopen(path.c_str(), "wb");
  DD_CHECK(file != nullptr);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  ShapesFound found;
  CheckCode(WithShapesOf(trace, path, &found).status(), "E0");
  DD_CHECK(found.matched <= found.ops);
}

}  // namespace
}  // namespace daydream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace daydream;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 6) {
    case 0:
      Journal(text);
      break;
    case 1:
      Learned(text);
      break;
    case 2:
      CheckCode(ReadDeviceText("fuzz.yaml", text).status(), "E0");
      break;
    case 3:
      CheckCode(ReadDeviceText("fuzz.textproto", text).status(), "E080");
      break;
    case 4:
      CheckCode(ReadRateTable("fuzz.csv", text).status(), "E0805");
      break;
    case 5:
      ExecutionTrace(text);
      break;
  }
  return 0;
}
