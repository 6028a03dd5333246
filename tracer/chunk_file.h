// A .ddtrace file that grows chunk by chunk; each chunk is one write(), so that what is written
// survives the death of the process.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/ddtrace/frame.h"
#include "tracer/recording.h"

namespace daydream::tracer {

// Functions return 0 or an errno. Never freed in a forked child: see Abandon().
class ChunkFile {
 public:
  explicit ChunkFile(const FileCalls& calls) : calls_(calls) {}
  ChunkFile(const ChunkFile&) = delete;
  ChunkFile& operator=(const ChunkFile&) = delete;
  ~ChunkFile();

  // Creates `path`, which must not be there, with the magic and a header chunk holding `header`.
  // After a failure nothing is left of the file.
  int Create(const char* path, std::string_view header);
  bool is_open() const { return file_ >= 0; }
  uint64_t size() const { return size_; }
  uint32_t chunks() const { return sequence_; }

  // Adds one chunk. After a failure the file is as before, or ends in a damaged chunk that
  // readers skip. Behind the chunk so many bytes stay reserved on the disk, where its file system
  // can do that: a chunk that would take them is refused, so that the index, which says what was
  // lost, finds room.
  int Append(const DdtraceChunkHeader& header, std::string_view message, size_t reserve = 0);
  // Adds the index chunk and the trailer, gives back what was reserved, syncs and closes; closes in
  // any case.
  int Finish(std::string_view index);
  // Closes without a write.
  void Close();

 private:
  int Pack(DdtraceChunkHeader header, std::string_view message);
  int Write(std::string_view bytes);
  int Reserve(size_t bytes);

  const FileCalls& calls_;
  int file_ = -1;
  uint64_t size_ = 0;
  uint32_t sequence_ = 0;
  bool reserves_ = true;  // the file system can
  ZSTD_CCtx* zstd_ = nullptr;
  std::vector<char> packed_;  // the chunk being written
  size_t packed_size_ = 0;
};

}  // namespace daydream::tracer
