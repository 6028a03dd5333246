// Matrix products: tiles of the library's menu run in waves over the multiprocessors, and the best
// tile counts. Every constant is fitted (costmodel/fit/), none to a single GPU's product.
#pragma once

#include "costmodel/device.h"
#include "costmodel/op_shape.h"

namespace daydream {

// How the best tile comes to its time. `ns` blends `compute_ns` and `memory_ns` and adds
// `split_ns`.
struct TileTime {
  double ns = 0;
  int tile_rows = 0, tile_columns = 0;
  int split = 1;     // parts of k that run apart and are added up
  double waves = 0;  // tiles per multiprocessor
  double compute_ns = 0, memory_ns = 0, split_ns = 0;
  double memory_bytes = 0;  // read and written, with what is read again
};

// A matrix product. `batched`: a library call for many products (bmm), which has fewer tiles to
// choose from and cannot split k. Zeros for a product without work. A microsecond.
TileTime TimeOfTiles(const DeviceSpec& device, const GemmShape& shape, DType dtype, bool batched);
double GemmNs(const DeviceSpec& device, const GemmShape& shape, DType dtype, bool batched);

// As TimeOfTiles, for ratios between number formats: also counts what feeding the tiles from the
// L2 cache takes, which tensor cores outrun and vector units do not, and what the operands of a
// convolution really occupy (`operands` are null for products). Convolutions are other kernels than
// the products that were measured on some GPUs: their rate is the rule's.
TileTime TimeOfFedTiles(const DeviceSpec& device, const GemmShape& shape, DType dtype, bool batched,
                        const Operands* operands);

}  // namespace daydream
