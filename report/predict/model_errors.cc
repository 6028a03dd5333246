#include "report/predict/model_errors.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "costmodel/device.h"
#include "report/predict/intervals.h"
#include "report/predict/residuals.h"
#include "report/text/format.h"

namespace daydream {
namespace {

// An optimization that changes less of the step says nothing of how well it is known.
constexpr double kLarge = 0.02;

// Of one dose: kernels whose work is known, and the others, are wrong together.
ModelOff OffOf(const ErrorKind& kind, std::span<const std::string> left_out) {
  const ModelError known = ModelErrorOf(kind.with_shapes, left_out);
  const ModelError other = ModelErrorOf(kind.without_shapes, left_out);
  const double unknown = 1 - kind.known;
  return {kind.known * known.sigma + unknown * other.sigma,
          kind.known * known.mean + unknown * other.mean};
}

ModelOff Scaled(const ModelOff& off, double by) { return {by * off.sigma, by * off.mean}; }
void AddSquares(const ModelOff& off, ModelOff& sum) {
  sum = {std::hypot(sum.sigma, off.sigma), std::hypot(sum.mean, off.mean)};
}

std::string StandIn(const Application& a, const Graph& recorded) {
  if (!a.transform->same_work || !a.params.text("from").empty()) return "";
  for (const Device& d : recorded.tables().devices) {
    const DeviceMatch match = MatchDevice(d);
    if (match.spec == nullptr || match.named || d.name.empty()) continue;
    return fmt::format("{} is taken as {}", Printable(d.name), match.spec->name);
  }
  return "";
}

// What an error of kernels by 1 is of the step.
double ShareOfKernels(const PlayedScenario& of, double sigma) {
  if (!of.ends.has_value() || sigma <= 0) return of.gpu;
  const double both = AsDouble(std::max(of.ends->slow - of.ends->quick, Duration{}));
  return both / 2 / (kNinety * sigma) / std::max(AsDouble(of.played), 1.0);
}

}  // namespace

ModelOff KernelErrors(const Graph& recorded, std::span<const Application> scenario,
                      std::span<const KernelTerms> terms, std::span<const std::string> left_out) {
  for (const Application& a : scenario) {
    if (!a.transform->same_work || a.transform->stated_by_user) continue;
    const ErrorKind kind = ErrorKindOf(a, recorded, terms);
    return Scaled(OffOf(kind, left_out), 1 - kind.measured);
  }
  return {};
}

ModelErrors FindModelErrors(const PlayedScenario& of) {
  ModelErrors errors;
  LeastChecked all, large;  // of all parts, however little they change
  std::map<std::string_view, Duration> changes = of.changes;
  for (const Application& a : of.scenario) {
    const auto it = changes.find(a.transform->name);
    if (it == changes.end() || a.transform->stated_by_user) continue;
    const ErrorKind kind = ErrorKindOf(a, of.recorded, of.terms);
    const ModelOff one = OffOf(kind, of.left_out);
    double share = 0;  // of the step that the model says
    if (a.transform->same_work) {
      const double left = 1 - kind.measured;
      share = left * ShareOfKernels(of, left * one.sigma);
    } else {  // what it saved is the step's no more; what it added still is
      const double without =
          AsDouble(std::max(of.after - it->second, std::min(of.after, of.before)));
      if (without > 0) share = DoseOf(kind.with_shapes, without, AsDouble(of.after));
    }
    if (errors.stand_in.empty()) errors.stand_in = StandIn(a, of.recorded);
    all.Add(kind.main(), of.left_out);
    if (share > kLarge) large.Add(kind.main(), of.left_out);
    const ModelOff off = Scaled(one, share);
    AddSquares(off, errors.step);
    if (!a.transform->same_work) AddSquares(off, errors.but_kernels);
    changes.erase(it);
  }
  errors.checked = large.kind.empty() ? all : large;
  return errors;
}

}  // namespace daydream
