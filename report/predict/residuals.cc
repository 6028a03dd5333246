#include "report/predict/residuals.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include <fmt/ranges.h>

#include "report/text/format.h"

namespace daydream {
namespace {

#define RESIDUALS(kind, group, recorded, composed, published, inside, least, most, ...) \
  {kind, group, recorded, composed, published, inside, least, most, {__VA_ARGS__}},
const ResidualGroup kResiduals[] = {
#include "report/predict/residuals.def"
};
#undef RESIDUALS

constexpr CheckedKernels kChecked[] = {
    {"amp", "gemm", "18 products of a ResNet-50 on a V100 (dPRO, MLSys'22)"},
    {"amp", "conv", "120 convolutions of a ResNet-50 on a V100 (dPRO, MLSys'22)"},
    {"prefetch", "", "two loader pairs of a ResNet-50 on a V100 (docs/accuracy.md)"},
    {"gpu", "conv", "a ResNet-50 on a V100 and an A100 (tests/transforms/other_gpu_test.cc)"},
    {"gpu", "norm", "a ResNet-50 on a V100 and an A100 (tests/transforms/other_gpu_test.cc)"},
    {"gpu", "elementwise",
     "a ResNet-50 on a V100 and an A100 (tests/transforms/other_gpu_test.cc)"},
    {"gpu", "gemm", "linear layers and bmm on 10 GPUs (NeuSight, ASPLOS'25; docs/cost-model.md)"},
    {"gpu", "softmax", "softmax on 9 GPUs (NeuSight, ASPLOS'25; docs/cost-model.md)"},
    {"batch", "gemm", "four models at two batch sizes each on 8 GPUs (NeuSight; docs/accuracy.md)"},
    {"batch", "elementwise", "the same"},
    {"batch", "softmax", "the same"},
    {"batch", "norm", "the same"},
    {"compile", "elementwise", "BERT and GPT-2 on an A100 (NeuSight; docs/accuracy.md)"},
    {"compile", "softmax", "the same"},
    {"compile", "norm", "the same"},
    {"pin-memory", "", "copies of 154 MB each way on an A100 (docs/accuracy.md)"},
};

constexpr double kNormal = 1.645;  // the end of 90 % in standard deviations

bool IsGpu(std::string_view kind) { return kind.starts_with("gpu"); }

double PriorOf(std::string_view kind) {
  if (kind.starts_with("gpu, other vendor") || kind.starts_with("gpu, slot-powered")) {
    return kPriorFarGpuError;
  }
  return IsGpu(kind) ? kPriorGpuError : kPriorModelError;
}

// P(|t| < x) of Student's t with whole degrees of freedom (Abramowitz and Stegun, Handbook of
// Mathematical Functions, 26.7.3 and 26.7.4). O(degrees).
double StudentShare(double x, size_t degrees) {
  const double angle = std::atan(x / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, sum = odd && degrees == 1 ? 0 : term;
  for (size_t k = odd ? 3 : 2; k + 1 < degrees; k += 2) {
    term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
    sum += term;
  }
  return odd ? (angle + sine * sum) * 2 / std::numbers::pi : sine * sum;
}

// Rows of `kind` and of all its special cases ("gpu, no shapes").
bool IsOf(const ResidualGroup& group, std::string_view transform) {
  return group.kind.starts_with(transform) &&
         (group.kind.size() == transform.size() || group.kind[transform.size()] == ',');
}

}  // namespace

std::span<const ResidualGroup> Residuals() { return kResiduals; }
std::span<const CheckedKernels> AllCheckedKernels() { return kChecked; }

double DoseOf(std::string_view kind, double before, double predicted) {
  return IsGpu(kind) ? 1 : std::fabs(std::log(predicted / before));
}

double ErrorOf(std::string_view kind, double before, double predicted, double measured) {
  const double dose = DoseOf(kind, before, predicted);
  if (dose < 3 * kRunToRun) return -1;
  return (std::max(predicted, measured) / std::min(predicted, measured) - 1) / dose;
}

double AlikeInGroups(std::span<const ResidualGroup* const> groups) {
  double rows = 0, sum = 0, squared_rows = 0;
  for (const ResidualGroup* g : groups) {
    const auto n = static_cast<double>(g->errors.size());
    rows += n, squared_rows += n * n;
    for (double e : g->errors) sum += e;
  }
  const double between_free = static_cast<double>(groups.size()) - 1;
  const double within_free = rows - static_cast<double>(groups.size());
  if (between_free < 1 || within_free < 1) return 1;
  double between = 0, within = 0;
  for (const ResidualGroup* g : groups) {
    const auto n = static_cast<double>(g->errors.size());
    const double mean = std::accumulate(g->errors.begin(), g->errors.end(), 0.0) / n;
    between += n * (mean - sum / rows) * (mean - sum / rows) / between_free;
    for (double e : g->errors) within += (e - mean) * (e - mean) / within_free;
  }
  const double usual_rows = (rows - squared_rows / rows) / between_free;
  const double all = between + (usual_rows - 1) * within;
  return all > 0 ? std::clamp((between - within) / all, 0.0, 1.0) : 1;
}

double RowsThatCount(double rows, double alike) { return rows / (1 + (rows - 1) * alike); }

ModelError ModelErrorOf(std::string_view kind, std::span<const std::string> left_out) {
  const double prior = PriorOf(kind);
  ModelError known;
  std::vector<const ResidualGroup*> groups;
  for (const ResidualGroup& g : kResiduals) {
    const bool kin = std::ranges::find(left_out, g.group) != left_out.end();
    if (g.kind == kind && !kin && g.errors.size() > 0) groups.push_back(&g);
  }
  const double alike = AlikeInGroups(groups);
  double squares = kPriorGroups * prior * prior, count = kPriorGroups, most = 0;
  std::vector<double> weights;
  for (const ResidualGroup* g : groups) {
    const auto rows = static_cast<double>(g->errors.size());
    known.rows += g->errors.size();
    most = std::max(most, *(g->errors.end() - 1));
    weights.push_back(RowsThatCount(rows, alike));
    count += weights.back();
    for (double e : g->errors) squares += weights.back() * e * e / rows;
    const double sum = std::accumulate(g->errors.begin(), g->errors.end(), 0.0);
    known.mean += sum / rows / static_cast<double>(groups.size());
  }
  if (groups.size() < 2) known.mean = std::max(known.mean, kMeanOfNormal * prior);
  const size_t degrees = kPriorGroups + groups.size();
  const double scale = std::sqrt(squares / count);
  auto share_below = [&](double error) {
    double sum = kPriorGroups * StudentShare(error / scale, degrees);
    for (size_t i = 0; i < groups.size(); ++i) {
      const auto below = std::ranges::upper_bound(groups[i]->errors, error);
      sum += weights[i] * static_cast<double>(below - groups[i]->errors.begin()) /
             static_cast<double>(groups[i]->errors.size());
    }
    return sum / count;
  };
  // At the upper end all known errors are below, and more than nine tenths of the others.
  double low = 0, high = std::max(most, 3 * scale);
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (share_below(middle) < 0.9 ? low : high) = middle;
  }
  known.sigma = high / kNormal;
  return known;
}

HeldRows HeldRowsOf(std::string_view kind) {
  HeldRows held;
  double shares = 0, groups = 0;
  for (const ResidualGroup& g : kResiduals) {
    if (g.kind != kind) continue;
    held.rows += g.rows();
    held.inside += g.inside;
    held.groups += g.errors.size() > 0 ? 1 : 0;
    shares += static_cast<double>(g.inside) / static_cast<double>(g.rows());
    ++groups;
  }
  if (groups > 0) held.share = shares / groups;
  return held;
}

std::string CheckedText(std::string_view transform) {
  size_t recorded = 0, composed = 0, published = 0, telling = 0;
  double least = INFINITY, most = 0;
  for (const ResidualGroup& g : kResiduals) {
    if (!IsOf(g, transform)) continue;
    recorded += g.recorded, composed += g.composed, published += g.published;
    telling += g.errors.size();
    least = std::min(least, g.least), most = std::max(most, g.most);
  }
  if (recorded + composed + published == 0) {
    return "never checked: no measured pair of before and after; intervals use the errors that are "
           "published for such predictions";
  }
  std::vector<std::string> kinds;
  if (recorded > 0) kinds.push_back(Plural(recorded, "recorded pair"));
  if (composed > 0) {
    kinds.push_back(Plural(composed, "composed step") + " (put together from measured operators)");
  }
  if (published > 0) {
    kinds.push_back(Plural(published, "published gain") + " (predicted from other programs)");
  }
  const std::string rows = fmt::format("{}", fmt::join(kinds, " and "));
  const std::string range = recorded + composed + published == 1
                                ? FormatPercent(most)
                                : FormatPercent(least) + " to " + FormatPercent(most);
  return fmt::format("{} of before and after (docs/accuracy.md): the step was off by {}{}", rows,
                     range,
                     telling > 0 ? "" : "; too small a change to say how well it is modelled");
}

bool WasChecked(std::string_view transform, std::string_view kernel_class) {
  for (const CheckedKernels& c : kChecked) {
    if (c.transform == transform && (c.kernel_class.empty() || c.kernel_class == kernel_class)) {
      return true;
    }
  }
  return false;
}

}  // namespace daydream
