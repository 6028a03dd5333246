// Rows and what they refer to, as messages of proto/daydream_trace.proto: dictionaries that grow
// over the whole file, and the rows of one chunk. Knows nothing of CUPTI, clocks or files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracer/graph_nodes.h"
#include "tracer/recording.h"
#include "tracer/trace_fields.h"

namespace daydream::tracer {

// What repeats from row to row. The words of `detail` mean, by kind:
//   kKernel                fields 1 to 17 of the message Launch, in their order
//   kMemcpy, kMemset       memory from, memory to, peer device + 1, flags
//   kSync, kEventRecord    kind, stream + 1 (0: none), context
//   kCall                  domain, cbid
//   kMark                  kind of the mark
struct Signature {
  static constexpr size_t kDetails = 17;
  uint32_t kind = 0;
  uint32_t name = 0;     // of tracer/name_table.h
  uint32_t columns = 0;  // 1 << Column for each that the row fills
  std::array<uint32_t, kDetails> detail{};
  friend bool operator==(const Signature&, const Signature&) = default;
};

// One event. Which of the last four words count is said by the columns of its signature.
struct Row {
  int64_t start = 0;  // ns, of the file
  uint64_t duration = 0;
  uint32_t lane = 0;
  uint32_t signature = 0;  // what SignatureOf() gave
  uint32_t correlation = 0;
  uint32_t small = 0;  // graph, or event
  uint64_t word = 0;   // bytes, value, return code, or device time
  uint64_t wide = 0;   // graph node, or event sync id
  uint16_t flags = 0;
  uint16_t columns = 0;  // set by Encoder::Add()
};

// Rows of one group stand together in a chunk, in the order in which they were added. Their times
// and ids grow slowly then, and pack well.
enum class RowGroup : uint8_t { kHost, kDevice, kMarks };

struct DeviceFacts {
  uint32_t id = 0;
  std::string name, uuid;
  uint32_t compute_major = 0, compute_minor = 0, multiprocessors = 0, warp_size = 0;
  uint32_t max_threads_per_multiprocessor = 0;
  uint64_t registers_per_multiprocessor = 0, shared_memory_per_multiprocessor = 0;
  uint64_t memory_bytes = 0, memory_bandwidth_kbps = 0, l2_bytes = 0, sm_clock_khz = 0;
  bool mig = false;
};

// The message Loss.
void EncodeLosses(const Losses& losses, std::string* out);

// One chunk, ready to be framed.
struct EncodedChunk {
  std::string message;  // EventChunk
  int64_t first_ns = 0, last_ns = 0;
  uint32_t rows = 0;
  bool has_definitions = false;
};

class Encoder {
 public:
  // More rows than this do not come into one chunk.
  static constexpr size_t kMaxRows = 4096;

  // So many different signatures take about 200 MB, here and in the reader.
  static constexpr size_t kMaxSignatures = 1 << 20;

  // `thread_name` gives the name of a thread, 0 if it has none.
  Encoder(uint32_t process, uint32_t (*thread_name)(uint32_t thread),
          size_t limit = kMaxSignatures);

  // ---- Dictionaries. All answers are ids of the file. ----
  uint32_t ThreadLane(uint32_t thread);
  // `stream` as CUPTI counts; kNoStream for what concerns a whole context. The device may be
  // kUnknownDevice: it is then that of the context.
  static constexpr uint32_t kNoStream = 0xffffffff, kUnknownDevice = 0xffffffff;
  uint32_t StreamLane(uint32_t device, uint32_t context, uint32_t stream);
  void SetStream(uint32_t context, uint32_t stream, int32_t priority, uint32_t flags);
  void SetContext(uint32_t context, uint32_t device, uint32_t null_stream);
  void AddDevice(const DeviceFacts& device);
  // Beyond `limit` (of the constructor) different ones, a new one says what kind of row it is
  // and no more.
  uint32_t SignatureOf(const Signature& signature);
  uint64_t reduced_signatures() const { return reduced_; }

  // ---- Contents ----
  void Add(RowGroup group, const Row& row);
  void AddGraphNode(const GraphNode& node, int64_t clock_origin_ns);
  void AddClock(const ClockReading& reading, int64_t clock_origin_ns);
  void SetLosses(const Losses& losses);

  bool IsFull() const { return rows_ >= kMaxRows; }
  uint64_t total_rows() const { return total_rows_; }  // of all chunks, lost ones too
  // Whether a chunk would say anything.
  bool HasNews() const;
  // All that came together. When there are many new names they come alone, without rows: ask
  // HasNews() again. Nothing is forgotten before Written() or Lost().
  const EncodedChunk& MakeChunk();
  // The chunk of MakeChunk() is in the file.
  void Written();
  // It is not and never will be: its rows and readings are gone, its definitions come again.
  // Returns the number of rows.
  uint32_t Lost();

 private:
  struct LaneState {
    int32_t kind = 0;
    uint32_t device = kUnknownDevice, context = 0, number = 0, name = 0;
  };
  struct StreamFacts {
    int32_t priority = 0;
    uint32_t flags = 0;
  };
  struct SignatureState {
    Signature signature;
    uint32_t chunk = 0;  // the last chunk that used it ...
    uint32_t used = 0;   // ... and its position there
  };
  struct CachedLane {
    uint64_t key = 0;
    uint32_t lane = kNoLane;
  };
  static constexpr uint32_t kNoLane = ~uint32_t{0};

  uint32_t LaneOf(uint64_t key, const LaneState& state);
  void GrowSlots();
  bool EncodeStrings(std::string* out);
  void EncodeLane(const LaneState& lane, std::string* out) const;
  void EncodeLanes(std::string* out);
  bool EncodeDefinitions();
  void EncodeUsed(std::string* out);
  void EncodeRows();
  template <class Put>
  void PutColumn(uint32_t field, uint32_t column, std::string* out, Put put);
  void Forget();

  const uint32_t process_;
  uint32_t (*const thread_name_)(uint32_t thread);

  std::vector<LaneState> lanes_;
  std::unordered_map<uint64_t, uint32_t> lane_ids_;
  std::array<CachedLane, 64> lane_cache_;
  std::unordered_map<uint64_t, StreamFacts> streams_;  // by context and stream
  std::unordered_map<uint32_t, uint32_t> context_device_;

  std::vector<SignatureState> signatures_;  // by id
  std::vector<uint32_t> slots_;             // open-addressed: id + 1, 0 = empty
  const size_t limit_;
  uint64_t reduced_ = 0;  // answers of SignatureOf() that do not

  // Definitions that are not in the file yet. Names are those of tracer/name_table.h, with the
  // same ids; the counts say how many of each are in the file, and will be with this chunk.
  std::string new_signatures_, new_devices_and_contexts_;
  uint32_t names_written_ = 0, names_in_chunk_ = 0;
  uint32_t lanes_written_ = 0, lanes_in_chunk_ = 0;
  uint32_t signatures_written_ = 0;
  bool empty_name_written_ = false;

  std::array<std::vector<Row>, 3> groups_;
  size_t rows_ = 0;
  uint64_t total_rows_ = 0;
  uint32_t all_columns_ = 0;  // of all rows that came together
  std::string nodes_and_clocks_, losses_;
  uint32_t chunk_number_ = 0;
  bool only_names_ = false;     // the chunk made last has no rows
  std::vector<uint32_t> used_;  // signature ids, by position in the chunk
  std::vector<char> scratch_;
  EncodedChunk chunk_;
};

}  // namespace daydream::tracer
