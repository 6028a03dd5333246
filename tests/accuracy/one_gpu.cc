#include "tests/accuracy/one_gpu.h"

#include <numeric>

#include "report/predict/what_if.h"

namespace daydream {
namespace {

double ElementsIn(const Dims& dims) {
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Trace>> OneGpu(const TrainedModel& model) {
  StepComposer composer(*FindDeviceSpec(model.gpu), model.host);
  std::vector<double> elements;
  for (const Dims& p : model.parameters) elements.push_back(ElementsIn(p));
  const std::vector<double>& work = model.work.empty() ? elements : model.work;
  auto part = [](const std::vector<double>& of, size_t i, double ms) {
    return 1e3 * ms * of[i] / std::accumulate(of.begin(), of.end(), 0.0);
  };
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    composer.Add({{"aten::linear", {}}}, "gemm", part(work, i, model.forward_ms));
  }
  for (size_t i = model.parameters.size(); i-- > 0;) {
    composer.Add({{"autograd::engine::evaluate_function: MmBackward0", {}}}, "gemm",
                 part(work, i, model.backward_ms));
    composer.AddGradient(model.parameters[i], model.type);
  }
  if (model.optimizer_ms > 0) {
    for (size_t i = 0; i < model.parameters.size(); ++i) {
      composer.Add({{"Optimizer.step#AdamW.step", {}}, {"aten::addcdiv_", {}}}, "adam",
                   part(elements, i, model.optimizer_ms));
    }
  }
  return composer.Build();
}

namespace {

absl::Status PredictAsked(const BuiltGraph& built, const ReplayCheck& replay, AskedRow& asked) {
  JudgedRow& row = asked.row;
  DD_ASSIGN_OR_RETURN(const Prediction p, PredictRow(built, replay, asked.scenario, row));
  if (asked.memory_gb) {
    row.before = row.predicted = *asked.memory_gb;
    row.low = row.high = std::nullopt;
    for (const MemoryChange& c : p.changes.memory) {
      const bool state = c.what.starts_with("optimizer state");
      if (state) row.predicted += static_cast<double>(c.bytes) / (1 << 30);
      if (state && c.unknown) row.why = "the optimizer's state is not known";
    }
  }
  return absl::OkStatus();
}

}  // namespace

void PredictRows(const TrainedModel& model, std::vector<AskedRow> asked,
                 std::vector<JudgedRow>& rows) {
  auto predict = [&]() -> absl::Status {
    DD_ASSIGN_OR_RETURN(const auto trace, OneGpu(model));
    DD_ASSIGN_OR_RETURN(const BuiltGraph built, BuildGraph(trace));
    DD_ASSIGN_OR_RETURN(ReplayCheck replay, CheckReplay(built, nullptr));
    // Published steps are means of many, and one step as they stand.
    replay.steps = 2, replay.window = false;
    for (AskedRow& a : asked) {
      const absl::Status status = PredictAsked(built, replay, a);
      if (!status.ok()) a.row.why = Message(status);
    }
    return absl::OkStatus();
  };
  const absl::Status status = predict();
  for (AskedRow& a : asked) {
    if (!status.ok()) a.row.why = Message(status);
    a.row.origin = RowOrigin::kComposed;
    rows.push_back(std::move(a.row));
  }
}

}  // namespace daydream
