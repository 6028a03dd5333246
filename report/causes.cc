#include "report/causes.h"

#include <algorithm>
#include <cmath>

namespace daydream {
namespace {

// Parts below this share of the effect are not worth a line of their own.
constexpr double kTooSmall = 0.001;

// Weights of a change on either side; the larger is 1.
struct Shares {
  double host = 1, gpu = 1;
};

Shares SharesOf(const BoundBy& path) {
  double host = static_cast<double>((path.cpu + path.data).ns);
  double gpu = static_cast<double>((path.gpu + path.comm).ns);
  double most = std::max(host, gpu);
  return most > 0 ? Shares{host / most, gpu / most} : Shares{};
}

}  // namespace

std::vector<CauseShare> SplitByCause(Duration delta, std::string_view opt,
                                     std::span<const Editor::Cause> causes, size_t steps,
                                     const BoundBy& path) {
  std::vector<CauseShare> out;
  if (causes.size() == 1) {
    out.push_back({causes[0].what, std::string(opt), delta});
    return out;
  }
  Shares shares = SharesOf(path);
  std::vector<double> weights;
  double total = 0;
  for (const Editor::Cause& c : causes) {
    double change =
        static_cast<double>(c.host.ns) * shares.host + static_cast<double>(c.gpu.ns) * shares.gpu;
    weights.push_back(change / static_cast<double>(std::max<size_t>(steps, 1)));
    total += weights.back();
  }
  // How much of the changed time shows in the step: none when it works against the outcome.
  double ratio = total == 0 ? 0 : std::clamp(static_cast<double>(delta.ns) / total, 0.0, 1.0);
  Duration rest = delta;
  for (size_t i = 0; i < causes.size(); ++i) {
    Duration part = Duration::FromDouble(weights[i] * ratio);
    if (part.ns == 0 || std::fabs(static_cast<double>(part.ns)) <
                            kTooSmall * std::fabs(static_cast<double>(delta.ns))) {
      continue;
    }
    out.push_back({causes[i].what, std::string(opt), part});
    rest -= part;
  }
  if (rest.ns != 0 || out.empty()) {
    std::string what = out.empty() && causes.empty() ? "changed times" : "order and waiting change";
    out.push_back({std::move(what), causes.empty() ? std::string(opt) : "(joint)", rest});
  }
  return out;
}

}  // namespace daydream
