// Measured surfaces: how long a matrix product takes on tensor cores, over m, n, k and the format.
// One file a GPU and format in costmodel/surfaces/, made by costmodel/fit/surfaces.py from products
// that NVIDIA's AIConfigurator timed on an A100, H100, B200 and L40S (Apache-2.0).
//
//   time = (launch + blend(arithmetic, memory)) * exp(correction(log2 m, log2 n, log2 k))
//
// Arithmetic: tiles in waves, the best of eight tiles and five splits of k. Memory: what is moved
// at sustained bandwidth, or from the L2 cache where it fits: A and C sooner than B, the weights,
// which nothing has just written. The constants are shares of the data sheet, so that a surface
// also holds for other cards of its generation; the correction is what remains, smooth, on a grid
// of powers of two, with a coarser one on top where m is no multiple of 8. Errors:
// docs/cost-model.md.
//
// These are bursts with warm caches, not long training steps, which power limits: ratios of two
// surfaces are the evidence, the absolute value is the fastest that a product runs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/device.h"
#include "costmodel/op_shape.h"

namespace daydream {

// Names as in the files; docs/cost-model.md tells what each is.
struct SurfaceConstants {
  double launch_kilocycles, rate_share, bandwidth_share, l2_speed_share, l2_share, weights_l2_share,
      warm_weights, tile_kilocycles, step_cycles, wave_odds, split_kilocycles, tile_128x128,
      tile_128x64, tile_64x64, tile_64x32, feed_share, blend, ramp_kilocycles, ragged,
      cast_kilocycles;
};

struct Surface {
  static constexpr std::array<size_t, 3> kNodes{16, 12, 12};     // log2 of m from 0, n and k from 5
  static constexpr std::array<size_t, 3> kRaggedNodes{6, 5, 5};  // the same, each step thrice
  static constexpr size_t kLengths = 7;  // classes of length with an interval of their own

  std::string device;  // where it was measured; several GPUs: "A100-SXM4-80GB, L40S, ..."
  DType format = DType::kBf16;
  bool measured = false;  // on this generation of GPUs; false: a mean of others, by generation
  int shapes = 0, rows = 0;
  SurfaceConstants constants{};
  std::vector<float> correction;               // natural logarithm
  std::vector<float> ragged_correction;        // added where m is no multiple of 8
  std::array<double, kLengths> low{}, high{};  // log of what 91 % of the rows lie between
};

// The text of one file of costmodel/surfaces/. Aborts on what those files do not hold.
Surface SurfaceOfText(std::string_view text);

// Of a generation and format; nullptr before compute capability 8.0, for other vendors' GPUs, and
// for formats without measurements (fp32) or without tensor cores on this GPU. fp16 is as bf16.
// A measured share of the tensor cores (daydream calibrate) moves its rate, see LongShareOf.
// TF32 has the surface of bf16 (nothing was measured): its own peak and size of elements, and the
// interval of GPUs that were left out. So has fp8 but `with_cast`: all of its rows hold a cast of
// A, which engines do so differently that it cannot be taken out of them again. kInt8Weights: where
// it was measured only, on compute capability 8.0; kInt8: nullptr, nobody measured its cores.
const Surface* SurfaceOf(const DeviceSpec& device, DType format, bool with_cast = false);

struct SurfaceTime {
  double ns = 0, low_ns = 0, high_ns = 0;  // nine of ten such bursts
  double compute_ns = 0, memory_ns = 0, launch_ns = 0, cast_ns = 0;
  double correction = 0;  // of the logarithm
  int tile_rows = 0, tile_columns = 0, split = 1;
  double waves = 0;
  bool memory_bound() const { return memory_ns > compute_ns; }
  bool launch_bound() const { return 2 * launch_ns > ns; }
};

// The same product in a long training step, whose power limits the clock where arithmetic does the
// waiting: for what is not compared with another surface. Recorded steps reach 0.68 to 0.84 of the
// peak on A100 and 0.60 to 0.69 on H100 where long rows of the tables reach 0.85 and 0.77: 1.15
// times as long, from 1 to 1.3.
double SustainedNs(const SurfaceTime& time);

// What a long product (8192 x 8192 x 8192) reaches of the peak by the surface, before the memory
// and the launch. Where the device has a measured_tensor_share, that takes its place: all rates of
// the surface move by the ratio.
double LongShareOf(const Surface& surface, const DeviceSpec& device);

// REQUIRES: SurfaceOf this device, format and `with_cast` (the time of casting A to a narrow format
// is in it). Products of a batch are taken as tiles of one product. 0.4 us.
SurfaceTime TimeOnSurface(const Surface& surface, const DeviceSpec& device, DType format,
                          const GemmShape& shape, bool with_cast = false);

// What nine of ten products lie between, wherever they run. Low: the kernel alone, as in a CUDA
// graph or a profiler, which has no launch in it, with all that fits in the L2 cache, as where the
// same product ran before. High: in a long step, whose power limits the clock (SustainedNs).
struct KernelRange {
  double low_ns = 0, high_ns = 0;
};
KernelRange RangeOnSurface(const Surface& surface, const DeviceSpec& device, DType format,
                           const GemmShape& shape, bool with_cast = false);

// What a product takes at least where rows of n or k elements do not begin at multiples of 16
// bytes: libraries read them by older kernels, in small pieces. 0 where they do, and on GPUs other
// than Hopper, which nobody measured. Of the tensor cores' peak 0.10 with pieces of 2 bytes, 0.24
// and 0.25 with 4, 0.26 with 8: an H200 with cuBLAS 13.0, n = 50257 and 30522 in bf16 and TF32
// (tests/data/h200/kernels.csv). Absolute times and formats on one GPU only: a ratio of two GPUs
// holds what both lose.
double UnalignedNs(const DeviceSpec& device, DType format, const GemmShape& shape);

// How much of its deviation (the logarithm of measured over surface) a product keeps on another
// GPU, as an exponent. Long ones keep more, and a kernel that is faster than its surface, which is
// the library's better idea, keeps more than one that is slower, which is an odd choice on this GPU
// (docs/cost-model.md, products measured on two GPUs).
double DeviationKept(double ns, double deviation);

}  // namespace daydream
