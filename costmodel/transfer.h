// The time of a measured operation on another GPU: the model's answer there, corrected by what the
// measurement says about this operation, not about the session that it was measured in.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "costmodel/op_time.h"

namespace daydream {

enum class OpFamily : uint8_t { kProduct, kMemory };
// Convolutions have no absolute times and belong to none; ask OpTime::absolute() first.
OpFamily FamilyOf(const OpTime& time);

// How much slower (above 0) or faster the recorded GPU ran a family than the model says, as a
// logarithm: the time-weighted median over the operations of a trace. A clock that was lower than
// usual shows here; it does not travel to another GPU. Of memory-bound work only 10 % count as
// that.
class SourceBias {
 public:
  // Leave out what is shorter than the floor of a kernel: it says nothing about rates.
  // `times`: how often it ran so.
  void Add(OpFamily family, double measured_ns, double model_ns, double times = 1);
  // 0 without any operation. O(n log n) after an Add.
  double Of(OpFamily family) const;

 private:
  struct Residual {
    double log_ratio = 0, weight = 0;
  };
  mutable std::array<std::vector<Residual>, 2> residuals_;
  mutable std::array<bool, 2> sorted_{};
};

struct TransferRules {
  // Share of an operation's own deviation that it keeps elsewhere. On the 20 pairs of training
  // GPUs the best exponent is 0.2 to 0.4 across architectures and up to 0.7 within one.
  double own = 0.5;
  // Also carry over what the whole family shows: for a trace whose GPU is known to run as the new
  // one will.
  bool keep_bias = false;
  // Of the kernels of the operation together.
  double floor_ns = 2000;
};

struct Transfer {
  enum class How : uint8_t {
    kSame,  // the same GPU and format: as measured
    // Model there x (own deviation)^own, with what the family shows beyond its session, and
    // corrected by at most twice what the models differ: as measured where they agree.
    kCentred,
    kRatio,    // measured x model there / model here: convolutions, or the model is far off
    kShort,    // under the floor on both: as measured, as its time is not made of its work
    kNothing,  // no work is known: as measured
    // Measured x surface there / surface here; what the family shows stays, and of what this one
    // deviates beyond that as much as data shows (DeviationKept of costmodel/surface.h).
    kSurfaces,
  };
  How how = How::kNothing;
  double ns = 0;
  bool bounded = false;  // the bound of the new GPU counts
};

// `here` and `there` are PredictOp of the same work on the two GPUs. Never below there.bound_ns;
// `same` says that GPU and format are the same. Model times under the floor count as the floor:
// short kernels do not get shorter with the rest.
Transfer TransferOp(double measured_ns, const OpTime& here, const OpTime& there, double bias,
                    bool same, const TransferRules& rules);

// The cruder rule for work whose size is not known: the ratio of sustained rates.
double ClassRatio(const DeviceSpec& here, const DeviceSpec& there, OpFamily family,
                  DType dtype_here, DType dtype_there);

}  // namespace daydream
