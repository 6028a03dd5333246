// The GPU's side of an Nsight Systems file: kernels, copies, sets, whole graphs, and waits.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/nsys/file.h"
#include "trace/recording/waits.h"

namespace daydream {

// Kernels, copies, sets and launches of whole CUDA graphs. Before ReadNsysWaits().
absl::Status ReadNsysWork(NsysFile& file);

// Rows about waits do not say reliably what they waited for; the calls do. They are held back until
// the calls are known.
class NsysWaits {
 public:
  explicit NsysWaits(NsysFile& file) : file_(file) {}

  // SYNCHRONIZATION and CUDA_EVENT.
  absl::Status Read();
  // Tells the name of a call. Cheap for calls that have no row about waiting.
  void NoteCall(uint32_t process, int64_t correlation, SyncKind kind, bool query);
  // Adds the rows.
  void Finish();

 private:
  struct Wait {
    TraceBuilder::Event event;
    NsysStream stream;
    uint32_t process = 0;
    int64_t correlation = 0, type = 0, event_sync = 0;
    SyncDetail detail;
  };
  struct Call {
    SyncKind kind = SyncKind::kUnknown;
    bool query = false;
  };
  absl::Status ReadRecords();
  void Join();
  SyncKind KindOf(const Wait& wait) const;

  NsysFile& file_;
  std::vector<Wait> waits_;
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, Call> calls_;
  std::vector<std::vector<EventRecord>> records_;  // by process
};

}  // namespace daydream
