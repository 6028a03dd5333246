// How long a kernel takes on a GPU, from the work it does. Bounds come from the data sheet,
// estimates from what GPUs sustain (costmodel/device.h).
#pragma once

#include "base/time.h"
#include "costmodel/device.h"
#include "costmodel/op_shape.h"

namespace daydream {

// No kernel with this work is faster: the data-sheet rates of arithmetic and memory, the latter
// for what cannot have been in the L2 cache. `dtype` picks tensor cores where the device has them
// for it, else the vector units.
Duration RooflineBound(const DeviceSpec& device, double flops, double bytes, DType dtype);

// Sustained roofline: the larger of arithmetic and memory time. For ratios between formats or
// devices of kernels whose algorithm is not known (convolutions).
double SustainedRooflineNs(const DeviceSpec& device, double flops, double bytes, DType dtype);

// A memory-bound kernel that moves `bytes`: sustained bandwidth, 2.5 times that for what stays in
// the L2 cache.
double MemoryNs(const DeviceSpec& device, double bytes);

// A matrix product. Tiles of the library's menu run in waves over the multiprocessors; the best
// tile counts. `batched`: a library call for many products (bmm), which has fewer tiles to choose
// from and cannot split k.
double GemmNs(const DeviceSpec& device, const GemmShape& shape, DType dtype, bool batched);

// As GemmNs, for ratios between number formats: also counts what feeding the tiles from the L2
// cache takes, which tensor cores outrun and vector units do not, and what the operands of a
// convolution really occupy (`operands` may be null).
double FedProductNs(const DeviceSpec& device, const GemmShape& shape, DType dtype, bool batched,
                    const Operands* operands);

// Softmax or layer norm, forward, over `rows` rows of `columns` fp32 elements.
enum class RowOp : uint8_t { kSoftmax, kLayerNorm };
double RowOpNs(const DeviceSpec& device, RowOp op, int64_t rows, int64_t columns);

// What `work` takes in a format: products and convolutions by FedProductNs, the rest by bytes. Not
// limited by launch latency: that is the caller's.
double FormatNs(const DeviceSpec& device, const OpWork& work, DType dtype);

// T(to) / T(from) of `work` on `device`. 1 when nothing is known about one of the formats.
double FormatRatio(const DeviceSpec& device, const OpWork& work, DType from, DType to);

// What a kernel that takes `measured_ns` in format `from` takes in `to`: T(to) * (t / T(from)) ^
// own, where `own` says how much of its deviation from the model it keeps. Sizes that do not fit
// tensor cores keep their time; nothing gets slower.
double InFormatNs(const DeviceSpec& device, const OpWork& work, DType from, DType to,
                  double measured_ns, double own);

}  // namespace daydream
