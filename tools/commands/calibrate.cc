#include "costmodel/device_fields.h"
#include "report/text/format.h"
#include "tools/command.h"
#include "tools/input/input.h"
#include "transforms/analysis/device_choice.h"
#include "transforms/analysis/rate_samples.h"
#include "transforms/core/source_text.h"

namespace daydream {
namespace {

struct Samples {
  std::vector<RateSample> samples;
  std::string source;
  std::string gpu;  // that recorded them; empty: not known
};

constexpr size_t kCalibrateMostTableBytes = 64 << 20;

bool IsTable(std::string_view path) { return path.ends_with(".csv"); }

absl::StatusOr<Samples> ReadSamples(const std::string& path, const Args& args, Session& session) {
  Samples read;
  if (IsTable(path)) {
    DD_ASSIGN_OR_RETURN(
        const std::string text,
        ReadTextFile(path, kCalibrateMostTableBytes,
                     {.code = "E0201", .what = "the table of measured operations cannot be read"}));
    DD_ASSIGN_OR_RETURN(read.samples, ReadRateTable(path, text));
    read.source = path.substr(path.rfind('/') + 1);
    return read;
  }
  DD_ASSIGN_OR_RETURN(auto trace, ReadTrace(path, args, session));
  session.Progress("building the graph");
  DD_ASSIGN_OR_RETURN(BuiltGraph built, BuildFor(trace, args));
  read.samples = SamplesOf(built.graph);
  read.source = trace->provenance.source;
  if (!trace->devices.empty()) {
    if (const DeviceMatch match = MatchDevice(trace->devices.front()); match.spec != nullptr) {
      read.gpu = match.spec->name;
    }
  }
  return read;
}

absl::StatusOr<DeviceChoice> GpuOf(std::string_view flag, const Args& args,
                                   const Samples& samples) {
  if (args.Has(flag)) return ChooseDevice(args.Get(flag));
  if (!samples.gpu.empty()) return ChooseDevice(samples.gpu);
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0104",
       .what = fmt::format("{} is needed", flag),
       .why = fmt::format("{} does not say which GPU it was measured on", samples.source),
       .fix = fmt::format("{} NAME, or {} FILE for a GPU that is not known", flag, flag)});
}

std::string CalibrateScreen(const Calibration& c, const Samples& samples, size_t compared,
                            const Session& session) {
  std::string text =
      fmt::format("{}, {} of {}; before any: {}\n\n", c.device.name,
                  Plural(samples.samples.size(), "operation"), samples.source, c.prior_from);
  Table table({{"rate", Align::kLeft},
               {"samples"},
               {"before"},
               {"by samples"},
               {"kept"},
               {"error before"},
               {"after"},
               {"held out"}});
  for (const RateFit& fit : c.fits) {
    const std::string_view unit = fit.rate == Rate::kBandwidth ? "GB/s" : "TFLOPS";
    auto rate = [&](double value) { return fmt::format("{:.4g} {}", value, unit); };
    table.AddRow({std::string(RateName(fit.rate)), FormatCount(fit.samples), rate(fit.prior),
                  rate(fit.alone),
                  rate(fit.kept) + (fit.at_peak   ? " (data sheet)"
                                    : fit.by_rule ? " (rule)"
                                                  : ""),
                  FormatPercent(fit.error_before), FormatPercent(fit.error_after),
                  fit.error_held_out > 0 ? FormatPercent(fit.error_held_out) : "-"});
  }
  text += table.Text(session.table_style());
  text +=
      "  kept: between the rule and the samples, nearer to these the more there are;\n"
      "  the rule where samples that were held out are no nearer by them\n";
  if (compared > 0) {
    text += fmt::format(
        "  {} were also measured on the other GPU: what the model is off by there "
        "is not taken for the rate\n",
        Plural(compared, "operation"));
  }
  if (c.unused > c.impossible) {
    text += fmt::format("  {} not used: convolutions, too short, or a format the GPU lacks\n",
                        Plural(c.unused - c.impossible, "operation"));
  }
  if (c.impossible > 0) {
    text += fmt::format("  {} not used: faster than the data sheet of the {} allows\n",
                        Plural(c.impossible, "operation"), c.device.name);
  }
  return text;
}

// What a description left out and a rule filled in stays marked as such in the one that is written.
void MarkAssumed(const DeviceChoice& gpu, DeviceSpec& spec) {
  if (gpu.path.empty()) return;
  for (const std::string& assumption : gpu.assumptions) {
    for (std::string_view field : DeviceFieldNames()) {
      if (assumption.starts_with(fmt::format("{} ", field))) spec.unsure.push_back(assumption);
    }
  }
}

absl::StatusOr<Exit> RunCalibrate(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(Samples samples, ReadSamples(args.positional()[0], args, session));
  DD_ASSIGN_OR_RETURN(DeviceChoice gpu, GpuOf("--gpu", args, samples));
  CalibrationRules rules{.source = fmt::format("daydream calibrate: {} of {}",
                                               Plural(samples.samples.size(), "operation"),
                                               samples.source)};
  DeviceChoice like;
  if (args.Has("--like")) {
    DD_ASSIGN_OR_RETURN(like, ChooseDevice(args.Get("--like")));
    rules.like = &like.spec;
  }
  size_t compared = 0;
  if (args.Has("--against")) {
    DD_ASSIGN_OR_RETURN(Samples other,
                        ReadSamples(std::string(args.Get("--against")), args, session));
    DD_ASSIGN_OR_RETURN(DeviceChoice there, GpuOf("--against-gpu", args, other));
    compared = Compare(samples.samples, other.samples, there.spec);
    rules.source += fmt::format(", {} of them also on {}", compared, there.spec.name);
    if (compared == 0) {
      session.Note(
          "no operation of the two has the same shape and format; --against changes "
          "nothing");
    }
  }
  DD_ASSIGN_OR_RETURN(Calibration calibration, Calibrate(gpu.spec, samples.samples, rules));
  MarkAssumed(gpu, calibration.device);
  session.Screen(CalibrateScreen(calibration, samples, compared, session));
  for (const std::string& assumption : gpu.assumptions) session.Note("assumed: " + assumption);
  DD_RETURN_IF_ERROR(session.WriteResult(args, DeviceTextproto(calibration.device)));
  if (args.Has("--output")) {
    session.Next(fmt::format("daydream whatif TRACE --opt 'gpu({})'", args.Get("--output")));
  }
  return Exit::kOk;
}

constexpr Flag kCalibrateFlags[] = {
    {.name = "--gpu", .value = "GPU", .help = "what was measured: a known GPU or a file"},
    {.name = "--like", .value = "GPU", .help = "a GPU that is built alike and has measured rates"},
    {.name = "--against", .value = "FILE", .help = "the same operations, measured on another GPU"},
    {.name = "--against-gpu", .value = "GPU", .help = "that other GPU"},
    {.name = "--output", .letter = 'o', .value = "FILE", .help = "write the description there"},
    {.name = "--force-overwrite", .letter = 'f', .help = "replace the file if it exists"},
};

}  // namespace

const Command kCalibrateCommand = {
    .name = "calibrate",
    .summary = "sustained rates of a GPU from a handful of measured operations",
    .usage = "SAMPLES.csv|TRACE [--gpu GPU] [--against FILE] [-o DEVICE.textproto]",
    .details =
        R"(Prints a description of the GPU whose rates for products and memory fit what was
measured; gpu(DEVICE.textproto) uses it. A table has a line for each operation, with a
head: op,b,m,k,n,h,bytes,dtype,us (linear, bmm, softmax, layernorm or memory; sizes as
the operation needs them; us of its kernels, without the launch). A recording with
shapes does as well. Few samples move a rate little: it is drawn towards the rule, which
--like corrects by what a similar GPU was measured to sustain. With --against, a table
or recording of the same operations on another GPU, what the model is off by there is
not taken for the rate.)",
    .examples =
        "daydream calibrate ops.csv --gpu L4 -o my-l4.textproto\n"
        "daydream calibrate a100.ddtrace --against v100.ddtrace -o my-a100.textproto",
    .flags = kCalibrateFlags,
    .takes = {.traces = true, .least = 1, .most = 1},
    .run = RunCalibrate,
};

}  // namespace daydream
