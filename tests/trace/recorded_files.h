// Small recordings of other tools (examples/imports), and real ones beside the repository.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/real_traces.h"
#include "tests/trace/kineto_text.h"
#include "tests/trace/trace_equal.h"
#include "trace/importer.h"

namespace daydream {

inline std::string ExampleFile(const std::string& name) {
  return std::string(DAYDREAM_SOURCE_DIR) + "/examples/imports/" + name;
}
inline std::string Sample(const std::string& name) {
  return (RealTraceFolder().parent_path() / "samples" / name).string();
}

inline std::shared_ptr<const Trace> Load(const std::string& path) {
  auto trace = ImportFile(path);
  EXPECT_TRUE(trace.ok()) << path << ": " << trace.status();
  if (!trace.ok()) return nullptr;
  EXPECT_EQ(AccountedFor(**trace), (*trace)->provenance.input_events) << path;
  return *trace;
}

inline size_t Rows(const Trace& t, EventKind kind) {
  return static_cast<size_t>(std::count(t.kind.begin(), t.kind.end(), kind));
}

// Without where it came from.
inline std::string Difference(const Trace& a, const Trace& b) {
  Trace x = a, y = b;
  x.provenance = y.provenance = Provenance();
  return TraceDifference(x, y);
}

// GPU operations with a call, and those that start before it.
inline std::pair<size_t, size_t> Joined(const Trace& t) {
  std::map<uint32_t, Instant> calls;
  for (size_t row = 0; row < t.rows(); ++row) {
    if (t.kind[row] == EventKind::kCall) calls.try_emplace(t.correlation[row], t.start[row]);
  }
  size_t with = 0, early = 0;
  for (size_t row = 0; row < t.rows(); ++row) {
    if (!IsGpuWork(t.kind[row])) continue;
    const auto call = calls.find(t.correlation[row]);
    with += call != calls.end();
    early += call != calls.end() && t.start[row] < call->second;
  }
  return {with, early};
}

}  // namespace daydream
