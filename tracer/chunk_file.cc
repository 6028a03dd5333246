#include "tracer/chunk_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace daydream::tracer {
namespace {

int OpenFile(const char* path, int flags, mode_t mode) { return open(path, flags, mode); }

int ReserveRoom(int file, off_t offset, off_t size) {
  return fallocate(file, FALLOC_FL_KEEP_SIZE, offset, size) == 0 ? 0 : errno;
}

}  // namespace

const FileCalls& SystemFileCalls() {
  static constexpr FileCalls kCalls = {OpenFile, write, ftruncate, ReserveRoom, fsync, close};
  return kCalls;
}

ChunkFile::~ChunkFile() {
  Close();
  ZSTD_freeCCtx(zstd_);
}

int ChunkFile::Create(const char* path, std::string_view header) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND;
  do {
    file_ = calls_.open(path, flags, 0644);
  } while (file_ < 0 && errno == EINTR);
  if (file_ < 0) return errno;
  size_ = 0;
  sequence_ = 0;
  int error = Write(kDdtraceMagic);
  if (error == 0) error = Append({.type = static_cast<uint8_t>(DdtraceChunkType::kHeader)}, header);
  if (error != 0) {
    Close();
    unlink(path);
  }
  return error;
}

int ChunkFile::Pack(DdtraceChunkHeader header, std::string_view message) {
  if (message.size() > kDdtraceMaxRaw) return EFBIG;
  if (zstd_ == nullptr) zstd_ = ZSTD_createCCtx();
  if (zstd_ == nullptr) return ENOMEM;
  const size_t most = kDdtraceHeaderSize + ZSTD_compressBound(message.size());
  if (packed_.size() < most) packed_.resize(most);
  char* payload = packed_.data() + kDdtraceHeaderSize;
  const size_t stored = ZSTD_compressCCtx(zstd_, payload, packed_.size() - kDdtraceHeaderSize,
                                          message.data(), message.size(), kDdtraceZstdLevel);
  if (ZSTD_isError(stored)) return EIO;
  header.codec = static_cast<uint8_t>(DdtraceCodec::kZstd);
  header.sequence = sequence_;
  header.raw_size = static_cast<uint32_t>(message.size());
  header.stored_size = static_cast<uint32_t>(stored);
  header.payload_crc = Crc32c({payload, stored});
  const auto encoded = EncodeChunkHeader(header);
  std::memcpy(packed_.data(), encoded.data(), encoded.size());
  packed_size_ = kDdtraceHeaderSize + stored;
  return 0;
}

int ChunkFile::Write(std::string_view bytes) {
  const uint64_t before = size_;
  while (!bytes.empty()) {
    const ssize_t done = calls_.write(file_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      const int error = done < 0 ? errno : EIO;
      // What is left of the chunk would only be skipped by readers.
      if (size_ != before && calls_.truncate(file_, static_cast<off_t>(before)) == 0) {
        size_ = before;
      }
      return error;
    }
    size_ += static_cast<uint64_t>(done);
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return 0;
}

int ChunkFile::Reserve(size_t bytes) {
  if (!reserves_) return 0;
  const int error = calls_.reserve(file_, static_cast<off_t>(size_), static_cast<off_t>(bytes));
  if (error == 0 || error == ENOSPC || error == EDQUOT || error == EFBIG) return error;
  reserves_ = false;
  return 0;
}

int ChunkFile::Append(const DdtraceChunkHeader& header, std::string_view message, size_t reserve) {
  int error = Pack(header, message);
  if (error == 0 && reserve > 0) error = Reserve(packed_size_ + reserve);
  if (error == 0) error = Write({packed_.data(), packed_size_});
  if (error == 0) ++sequence_;
  return error;
}

int ChunkFile::Finish(std::string_view index) {
  const uint64_t index_offset = size_;
  int error = Append({.type = static_cast<uint8_t>(DdtraceChunkType::kIndex)}, index);
  if (error == 0) {
    const auto trailer = EncodeTrailer(index_offset);
    error = Write({trailer.data(), trailer.size()});
  }
  if (calls_.truncate(file_, static_cast<off_t>(size_)) != 0 && error == 0) error = errno;
  if (calls_.sync(file_) != 0 && error == 0) error = errno;
  Close();
  return error;
}

void ChunkFile::Close() {
  if (file_ >= 0) calls_.close(file_);
  file_ = -1;
}

}  // namespace daydream::tracer
