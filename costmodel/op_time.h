// How long an operation takes on a GPU that may not be at hand, with the terms of the answer.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "costmodel/device.h"
#include "costmodel/op_shape.h"

namespace daydream {

struct OpTime {
  enum class Method : uint8_t {
    kNothing,   // no work
    kTiles,     // products: tiles in waves
    kRoofline,  // convolutions and recurrent layers: good for ratios of GPUs only
    kRows,      // softmax, layer norm
    kBytes,     // everything else: what it moves
    kSurface,   // products on tensor cores that were measured (costmodel/surface.h)
  };
  Method method = Method::kNothing;
  // What the library is taken to do for the longest product, where its shape asks for other than a
  // tile of the result for each block.
  enum class Algorithm : uint8_t {
    kTiles,
    kSplitK,   // few tiles and a long k: parts of it, which are added up afterwards
    kFewRows,  // at most kFewRowsMost: the matrix is read once, and most of each tile is empty
  };
  static constexpr int64_t kFewRowsMost = 16;
  Algorithm algorithm = Algorithm::kTiles;
  double ns = 0;            // of all its kernels, without any launch latency; never below bound_ns
  double bound_ns = 0;      // data-sheet roofline
  double sustained_ns = 0;  // kSurface: in a long step, which power limits; ns is a burst
  // What nine of ten measurements lie between; kSurface: of bursts (RangeOnSurface: of any).
  double low_ns = 0, high_ns = 0;
  bool bounded = false;  // the model was below the bound, which counts instead

  // What the time is made of, for people. Several products have the terms of the longest.
  struct Term {
    std::string_view what;  // "waves"
    double value = 0;
    std::string_view unit;  // "us", "TFLOPS", "MB"; empty for plain numbers
  };
  std::array<Term, 10> terms;
  size_t term_count = 0;

  // False: only the ratio of such times on two GPUs, in the same format, means something. (Another
  // format on one GPU: InFormatNs of costmodel/roofline.h.)
  bool absolute() const { return method != Method::kRoofline; }
};
std::string_view MethodName(OpTime::Method method);           // "tiles in waves"
std::string_view AlgorithmName(OpTime::Algorithm algorithm);  // "split-K"

// The time of `work` with its data in `dtype` (kUnknown: as fp32). No limit by launch latency: that
// is the caller's, kKernelFloorNs a kernel. Deterministic; about a microsecond.
OpTime PredictOp(const DeviceSpec& device, const OpWork& work, DType dtype);

// "512.3 us by tiles in waves, split-K: tile rows 128, ..., bound 430.1 us".
std::string Explain(const OpTime& time);

// PredictOp with answers kept by shape and format. References live as long as the table. The
// device must live as long, too.
class OpTimes {
 public:
  explicit OpTimes(const DeviceSpec& device) : device_(device) {}
  const OpTime& Of(const OpWork& work, DType dtype);
  const DeviceSpec& device() const { return device_; }
  size_t size() const { return times_.size(); }

 private:
  struct Key {
    OpWork work;
    DType dtype = DType::kUnknown;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  const DeviceSpec& device_;
  absl::flat_hash_map<Key, std::unique_ptr<OpTime>, Hash> times_;
};

}  // namespace daydream
