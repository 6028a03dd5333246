// Turns parsed Kineto events into rows of a trace, and counts those that do not become rows.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/kineto/ascend.h"
#include "trace/kineto/event.h"
#include "trace/trace_builder.h"

namespace daydream {

class KinetoRows {
 public:
  explicit KinetoRows(TraceBuilder& builder) : builder_(builder) {}

  // Adds the event that begins at byte `offset` of the text. False when the event is malformed:
  // it was counted, and `*why` says what is wrong with it.
  bool Add(const KinetoEvent& event, int64_t offset, std::string_view* why);
  // One event that could not be parsed.
  void AddUnreadable(int64_t offset);

  uint64_t events() const { return events_; }
  uint64_t malformed() const { return malformed_; }
  // Names threads and hands all counts to the builder. Call once, at the end.
  void Finish();

 private:
  enum class Kind : uint8_t;
  struct KnownCategory {
    std::array<char, 24> text{};
    uint8_t size = 0;
    bool used = false;
    Kind kind{};
    uint16_t unknown = 0;  // which unknown category
  };
  struct KnownLane {
    int64_t process = -1, number = INT64_MIN;
    bool stream = false;
    LaneId lane;
  };
  struct Tally {
    uint64_t count = 0;
    int64_t first_byte = -1;
    void Add(int64_t offset) {
      if (count++ == 0) first_byte = offset;
    }
  };
  enum Reason : size_t;

  static uint8_t KindOfCategory(std::string_view text);
  const KnownCategory& Categorise(const JsonString& text);
  uint16_t UnknownCategory(std::string_view text);
  bool AddSlice(const KinetoEvent& e, const KnownCategory& category, int64_t offset,
                std::string_view* why);
  bool AddCpu(const KinetoEvent& e, Kind kind, TraceBuilder::Event& row, int64_t offset,
              std::string_view* why);
  bool AddGpu(const KinetoEvent& e, Kind kind, TraceBuilder::Event& row, int64_t offset,
              std::string_view* why);
  bool AddAscend(const KinetoEvent& e, AscendRows::Kind kind, TraceBuilder::Event& row,
                 int64_t offset, std::string_view* why);
  void AddWithoutSlice(const KinetoEvent& e, int64_t offset);
  bool AddAllocation(const KinetoEvent& e);
  void FinishAllocations();
  bool Malformed(Reason reason, int64_t offset, std::string_view* why);

  // details.cc: names, lanes, correlations and the rows of the detail tables.
  NameId InternName(const JsonString& name, int64_t offset);
  NameId InternText(const JsonString& text);
  NameId InternRaw(std::string_view json);
  uint32_t CorrelationOf(const KinetoEvent& e, int64_t offset);
  void NoteCall(uint32_t correlation, bool driver, int64_t offset);
  void NoteThreadName(const KinetoEvent& e);
  int64_t StreamOf(const KinetoEvent& e);
  int64_t IdentityOf(const JsonIdentity& identity);
  LaneId ThreadLane(const KinetoEvent& e);
  LaneId StreamLane(int64_t device, int64_t stream);
  std::string StreamName(int64_t stream) const;  // "stream 7", or the text that stands for it
  uint32_t OpRow(const KinetoArgs& args);
  uint32_t KernelRow(const KinetoArgs& args);
  void NoteMultiprocessors(const KinetoArgs& args, int64_t device);
  void FinishDevices();
  uint32_t CopyRow(const KinetoEvent& e, bool copy);
  uint32_t SyncRow(const KinetoEvent& e);
  uint32_t CollectiveRow(const KinetoArgs& args);

  // kineto/collectives.cc. True: the row waits for FinishCollectives().
  bool DeferCollective(const KinetoArgs& args, const TraceBuilder::Event& row);
  void NoteCollectiveRange(const KinetoArgs& args, const TraceBuilder::Event& row);
  void FinishCollectives();
  struct PendingCollective {
    TraceBuilder::Event row;
    CollectiveDetail detail = {};
    OpDetail op = {};
    bool recorded = true;  // by record_param_comms
  };
  void FindRange(PendingCollective& pending, std::vector<bool>& told);
  struct CollectiveRange {
    LaneId lane;
    Instant start, end;
    NameId name, dtype;
    int64_t elements = 0;
  };

  TraceBuilder& builder_;
  AscendRows ascend_;
  std::vector<PendingCollective> pending_collectives_;
  std::vector<CollectiveRange> collective_ranges_;
  uint64_t events_ = 0, malformed_ = 0;
  std::array<KnownCategory, 64> categories_{};
  std::array<KnownLane, 64> lanes_{};
  std::array<Tally, 32> tallies_{};  // by Reason
  struct LaunchedOn {
    int64_t device = 0, multiprocessors = 0;
    uint64_t kernels = 0;
  };
  std::vector<LaunchedOn> launched_on_;
  Tally repaired_names_, bad_correlations_, repeated_correlations_;
  std::vector<std::pair<std::string, Tally>> unknown_categories_;
  using Identity = std::pair<int64_t, int64_t>;  // process and thread
  absl::flat_hash_map<Identity, std::string> thread_names_;
  std::vector<std::pair<LaneId, Identity>> thread_lanes_;
  // Numbers of the threads that allocated: their lanes, if any, are known at the end.
  absl::flat_hash_map<Identity, LaneId> allocating_threads_;
  absl::flat_hash_map<std::string, int64_t> text_ids_;  // pid and tid that are no numbers
  // Correlation ids that calls used: pages of 4096 bits, runtime and driver apart.
  using Page = std::array<uint64_t, 64>;
  absl::flat_hash_map<uint32_t, std::unique_ptr<Page>> seen_calls_;
  uint32_t last_page_ = UINT32_MAX;
  Page* last_bits_ = nullptr;
  std::string scratch_;
};

}  // namespace daydream
