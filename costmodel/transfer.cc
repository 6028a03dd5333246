#include "costmodel/transfer.h"

#include <algorithm>
#include <cmath>

#include "costmodel/roofline.h"
#include "costmodel/surface.h"

namespace daydream {
namespace {

// Beyond this the work was taken for something else than what ran: the trace knows better.
constexpr double kFarOff = 3;

// What sessions of one GPU differ by: V100 rows of two sessions in the NeuSight data, 7 %.
constexpr double kSession = 1.1;

// How many times further than the models of two GPUs differ a measurement may be corrected.
constexpr double kMostOfChange = 2;

// What the recorded session had of a family's deviation. The clock of the processors falls with
// heat and power limits, by half on some cards; that of the memory does not, so what remains of
// memory-bound work is what the model does not know of it.
double OfSession(OpFamily family, double bias) {
  if (family == OpFamily::kProduct) return bias;
  return std::clamp(bias, -std::log(kSession), std::log(kSession));
}

}  // namespace

OpFamily FamilyOf(const OpTime& time) {
  const bool product = time.method == OpTime::Method::kTiles ||
                       time.method == OpTime::Method::kSurface ||
                       time.method == OpTime::Method::kRoofline;
  return product ? OpFamily::kProduct : OpFamily::kMemory;
}

void SourceBias::Add(OpFamily family, double measured_ns, double model_ns, double times) {
  if (!(measured_ns > 0) || !(model_ns > 0)) return;
  const auto i = static_cast<size_t>(family);
  residuals_[i].push_back({std::log(measured_ns / model_ns), measured_ns * times});
  sorted_[i] = false;
}

double SourceBias::Of(OpFamily family) const {
  const auto i = static_cast<size_t>(family);
  std::vector<Residual>& all = residuals_[i];
  if (all.empty()) return 0;
  if (!sorted_[i]) {
    std::sort(all.begin(), all.end(), [](const Residual& a, const Residual& b) {
      return std::pair(a.log_ratio, a.weight) < std::pair(b.log_ratio, b.weight);
    });
    sorted_[i] = true;
  }
  double total = 0, below = 0;
  for (const Residual& r : all) total += r.weight;
  for (const Residual& r : all) {
    below += r.weight;
    if (below >= total / 2) return r.log_ratio;
  }
  return all.back().log_ratio;
}

Transfer TransferOp(double measured_ns, const OpTime& here, const OpTime& there, double bias,
                    bool same, const TransferRules& rules) {
  Transfer transfer{.ns = measured_ns};
  if (same) {
    transfer.how = Transfer::How::kSame;
    return transfer;
  }
  if (!(here.ns > 0) || !(there.ns > 0) || !(measured_ns > 0)) return transfer;
  if (std::max(here.ns, there.ns) <= rules.floor_ns) {
    transfer.how = Transfer::How::kShort;
    return transfer;
  }
  const double model_here = std::max(here.ns, rules.floor_ns);
  // A burst compares with bursts; what is not compared with one is part of a step.
  const bool from_model = here.method != OpTime::Method::kSurface;
  const double ns_there = from_model ? std::max(there.ns, there.sustained_ns) : there.ns;
  const double model_there = std::max(ns_there, rules.floor_ns);
  const double own = std::log(measured_ns / model_here);
  const bool surfaces = !from_model && there.method == OpTime::Method::kSurface;
  if (!here.absolute() || std::abs(own) > std::log(kFarOff)) {
    transfer.how = Transfer::How::kRatio;
    transfer.ns = measured_ns * model_there / model_here;
  } else if (surfaces) {
    // Power and the session bind a product here as there: a sustained step stays one.
    transfer.how = Transfer::How::kSurfaces;
    const double kept = bias + DeviationKept(model_there, own - bias) * (own - bias);
    transfer.ns = model_there * std::exp(kept);
  } else {
    transfer.how = Transfer::How::kCentred;
    const double session = rules.keep_bias ? 0 : OfSession(FamilyOf(here), bias);
    const double kept = rules.own * (own - bias) + bias - session;
    const double most = kMostOfChange * std::abs(std::log(model_there / model_here));
    transfer.ns = model_there * std::exp(std::clamp(kept, own - most, own + most));
  }
  transfer.bounded = transfer.ns < there.bound_ns;
  transfer.ns = std::max(transfer.ns, there.bound_ns);
  return transfer;
}

double ClassRatio(const DeviceSpec& here, const DeviceSpec& there, OpFamily family,
                  DType dtype_here, DType dtype_there) {
  if (family == OpFamily::kProduct) {
    return RateFor(here, dtype_here, false) / RateFor(there, dtype_there, false);
  }
  const double bytes = DTypeBytes(dtype_there) / DTypeBytes(dtype_here);
  return bytes * here.SustainedBandwidth() / there.SustainedBandwidth();
}

}  // namespace daydream
