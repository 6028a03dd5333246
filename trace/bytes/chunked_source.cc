#include "trace/bytes/chunked_source.h"

#include <utility>

namespace daydream {

ChunkedSource::ChunkedSource(std::string name, int64_t limit) : limit_(limit) {
  name_ = std::move(name);
}

absl::StatusOr<std::string_view> ChunkedSource::Peek() {
  if (!held_.has_value()) held_ = Produce();
  return *held_;
}

absl::StatusOr<std::string_view> ChunkedSource::Next() {
  absl::StatusOr<std::string_view> chunk = held_.has_value() ? *std::move(held_) : Produce();
  held_.reset();
  if (!chunk.ok()) return chunk;
  handed_out_ += static_cast<int64_t>(chunk->size());
  if (handed_out_ > limit_) {
    return TooManyBytes(name_, fmt::format("the limit is {} bytes of text", limit_));
  }
  return chunk;
}

absl::Status PackedDataEndsEarly(const std::string& name) {
  return MakeStatus(absl::StatusCode::kDataLoss,
                    {.code = "E0205",
                     .what = "the compressed data ends early",
                     .where = name,
                     .why = "the file was not written or copied to its end",
                     .effect = "events at the end are missing",
                     .fix = "copy the file again, or end the profiler before the program exits"});
}

absl::Status PackedDataDamaged(const std::string& name, std::string why) {
  return MakeStatus(
      absl::StatusCode::kDataLoss,
      {.code = "E0206",
       .what = "the compressed data is damaged",
       .where = name,
       .why = std::move(why),
       .fix = "copy the file again; `gzip -t` or `zstd -t` tells whether it is good"});
}

absl::Status TooManyBytes(const std::string& name, std::string why) {
  return MakeStatus(absl::StatusCode::kResourceExhausted,
                    {.code = "E0207",
                     .what = "this file unpacks to more text than is read",
                     .where = name,
                     .why = std::move(why),
                     .fix = "record fewer steps, or unpack the file and see what is in it"});
}

absl::Status CheckExpansion(const std::string& name, int64_t in, int64_t out) {
  // Traces shrink 10 to 30 times (measured on real ones); deflate's ceiling is 1032.
  constexpr int64_t kMaxRatio = 150;
  constexpr int64_t kFree = int64_t{64} << 20;
  if (out <= kFree || out / kMaxRatio <= in) return absl::OkStatus();
  return TooManyBytes(
      name, fmt::format("{} bytes became {}: more than {} times as many", in, out, kMaxRatio));
}

}  // namespace daydream
