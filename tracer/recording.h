// One .ddtrace file while it is being written: takes CUPTI's buffers, marks and facts, and writes
// chunks (docs/formats.md). Used by one thread at a time, the worker; nothing here takes a lock of
// the program or calls CUDA.
//
// Times go in as CLOCK_MONOTONIC (or what SetCuptiOffset() makes into it) and are stored relative
// to RecordingFacts::clock_origin_ns.
#pragma once

#include <cupti.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace daydream::tracer {

// What the decoder needs of the loaded CUPTI. Any may be a fake.
struct CuptiDecoding {
  uint32_t version = 0;  // of cuptiGetVersion; decides which late fields exist
  CUptiResult (*next_record)(uint8_t* buffer, size_t valid, CUpti_Activity** record) = nullptr;
  CUptiResult (*callback_name)(CUpti_CallbackDomain domain, uint32_t cbid,
                               const char** name) = nullptr;
};

// Known when the file is opened; written into its header. Empty, 0 or -1 = not known.
struct RecordingFacts {
  int64_t clock_origin_ns = 0;  // CLOCK_MONOTONIC at time 0 of the file
  uint32_t pid = 0, parent_pid = 0;
  std::string hostname, boot_id;
  std::string session_id;  // 16 bytes, not their hex digits
  std::vector<std::string> argv;
  uint32_t cupti_version = 0, cuda_driver_version = 0, cuda_runtime_version = 0;
  std::string cupti_path;
  std::vector<std::string> enabled_kinds;
  // What this CUPTI does not tell, and what follows.
  std::vector<std::pair<std::string, std::string>> lacks;
  std::vector<std::pair<std::string, std::string>> environment, software;
  int32_t rank = -1, world_size = -1, local_rank = -1;
};

// Totals since Open(), as the message Loss of the file.
struct Losses {
  uint64_t cupti_dropped = 0;        // records that CUPTI dropped
  uint64_t no_buffer = 0;            // records or buffers for which there was no memory
  uint64_t unknown_kind = 0;         // records of an unknown kind
  uint64_t writer_backpressure = 0;  // marks for which the writer had no time
  uint64_t invalid_time = 0;         // rows whose time was not collected; they are in the file
  uint64_t lost_bytes = 0;           // of buffers whose rest could not be read
  uint64_t not_written = 0;          // rows that the disk did not take ...
  uint32_t write_error = 0;          // ... and the first reason, an errno
  uint64_t unnamed = 0;              // texts for which there was no room; their marks have no name
  friend bool operator==(const Losses&, const Losses&) = default;
};

// One instant as several clocks see it. 0 = not read.
struct ClockReading {
  int64_t monotonic_ns = 0, realtime_ns = 0, cupti_ns = 0;
  uint32_t uncertainty_ns = 0;
};

// As Index.End in proto/daydream_trace.proto.
enum class RecordingEnd : uint8_t {
  kExit = 2,
  kSignal = 3,
  kDetach = 4,
  kExec = 5,
  kError = 6,
};

// The system calls of a Recording, so that tests can make them fail. As the functions of the same
// names; -1 and errno on failure.
struct FileCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*write)(int file, const void* bytes, size_t size);
  int (*truncate)(int file, off_t size);
  // posix_fallocate() that leaves the size of the file as it is.
  int (*reserve)(int file, off_t offset, off_t size);
  int (*sync)(int file);
  int (*close)(int file);
};
const FileCalls& SystemFileCalls();

class Recording {
 public:
  explicit Recording(const FileCalls& calls = SystemFileCalls());
  ~Recording();  // closes the file as it is; Close() first for one with an index
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Creates the file (it must not be there) and writes magic and header. Returns 0 or an errno;
  // after a failure Open() may be tried again. Everything below needs an open file.
  int Open(const char* path, const RecordingFacts& facts);
  bool is_open() const;

  // When CUPTI is there: before the first AddBuffer().
  void SetCupti(const CuptiDecoding& cupti);
  // What to add to CUPTI's times to get CLOCK_MONOTONIC; 0 when CUPTI uses our clock callback.
  void SetCuptiOffset(int64_t ns);

  // Decodes all records of a completed buffer, of which `valid` bytes are filled. The buffer may
  // be reused afterwards. Writes chunks when enough rows have come together.
  void AddBuffer(uint8_t* buffer, size_t valid);
  // Takes the marks that wait in tracer/marks.h, and the nodes of tracer/graph_nodes.h.
  void AddMarks();
  void AddClock(const ClockReading& reading);
  // A fact about the process that came up after Open(), "key=value".
  void AddNote(std::string_view text, int64_t monotonic_ns);
  // Adds to the totals what the caller lost. invalid_time and unknown_kind are counted here.
  void AddLosses(const Losses& more);

  // Writes what has come together as one chunk, with one write(). Does nothing when there is
  // nothing new. Returns 0, or the errno of a chunk that could not be written: its rows are gone
  // and counted, its definitions wait for the next chunk, and the file stays readable.
  int Flush();
  // Flushes, writes index and trailer, syncs and closes. `detail`: exit code or signal number.
  int Close(RecordingEnd end, int32_t detail);

  // In a forked child: forgets the file without writing a byte. The object is then as after
  // construction; memory of the parent's recording is not freed.
  void AbandonInChild();

  const Losses& losses() const;
  uint64_t rows() const;    // taken so far, written or not
  uint64_t bytes() const;   // of the file so far
  int first_error() const;  // the first errno that Flush() met; 0: none

 private:
  class Impl;
  static Impl* abandoned_;  // the last one: not freed, but not forgotten
  Impl* impl_;
  const FileCalls& calls_;
};

}  // namespace daydream::tracer
