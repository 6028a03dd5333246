#include <zstd.h>

#include <utility>

#include "trace/bytes/chunked_source.h"

namespace daydream {
namespace {

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

class ZstdSource : public ChunkedSource {
 public:
  ZstdSource(std::unique_ptr<ByteSource> packed, int64_t limit)
      : ChunkedSource(packed->name(), limit),
        packed_(std::move(packed)),
        stream_(ZSTD_createDStream()),
        text_(std::make_unique_for_overwrite<char[]>(kChunkBytes)) {}
  int64_t consumed() const override { return packed_->consumed(); }
  int64_t total() const override { return packed_->total(); }

 protected:
  absl::StatusOr<std::string_view> Produce() override {
    if (!failure_.ok()) return failure_;
    ZSTD_outBuffer out{text_.get(), kChunkBytes, 0};
    while (out.pos < out.size && !at_end_ && failure_.ok()) failure_ = Step(out);
    out_ += static_cast<int64_t>(out.pos);
    if (absl::Status s = CheckExpansion(name_, in_, out_); !s.ok()) failure_ = s;
    if (out.pos == 0 && !failure_.ok()) return failure_;
    return std::string_view(text_.get(), out.pos);
  }

 private:
  absl::Status Step(ZSTD_outBuffer& out) {
    if (input_.pos == input_.size && !input_ended_) {
      DD_ASSIGN_OR_RETURN(std::string_view more, packed_->Next());
      in_ += static_cast<int64_t>(more.size());
      input_ended_ = more.empty();
      input_ = {more.data(), more.size(), 0};
    }
    size_t before = out.pos;
    bool no_input = input_.pos == input_.size;
    if (no_input && between_frames_) {
      at_end_ = true;
      return absl::OkStatus();
    }
    size_t code = ZSTD_decompressStream(stream_.get(), &out, &input_);
    if (ZSTD_isError(code)) return PackedDataDamaged(name_, ZSTD_getErrorName(code));
    between_frames_ = code == 0;
    if (no_input && !between_frames_ && out.pos == before) return PackedDataEndsEarly(name_);
    return absl::OkStatus();
  }

  std::unique_ptr<ByteSource> packed_;
  std::unique_ptr<ZSTD_DStream, FreeStream> stream_;
  std::unique_ptr<char[]> text_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  absl::Status failure_;
  bool input_ended_ = false, between_frames_ = false, at_end_ = false;
  int64_t in_ = 0, out_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> MakeZstdSource(std::unique_ptr<ByteSource> packed, int64_t limit) {
  return std::make_unique<ZstdSource>(std::move(packed), limit);
}

}  // namespace daydream
