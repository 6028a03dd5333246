#include "costmodel/kernel_class.h"

#include <array>
#include <cctype>
#include <initializer_list>
#include <string>

#include "base/text.h"

namespace daydream {
namespace {

// Names of template kernels run to kilobytes; what tells their class is at the front.
constexpr size_t kLookedAt = 400;

constexpr std::array<std::string_view, 13> kClassNames = {
    "gemm", "conv",      "attention", "elementwise", "reduce", "norm", "softmax",
    "pool", "optimizer", "index",     "comm",        "copy",   "other"};
static_assert(std::size(kClassNames) == static_cast<size_t>(KernelClass::kOther) + 1);

std::string LowerHead(std::string_view name) {
  std::string lower(name.substr(0, kLookedAt));
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

using Words = std::initializer_list<std::string_view>;

struct ClassRule {
  KernelClass kind;
  Words words;
};

// The first rule with a word in the name wins: from names that say one thing only to words that
// many names hold by the way.
const std::initializer_list<ClassRule> kRules = {
    {KernelClass::kComm,
     {"nccl", "rccl", "all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter",
      "alltoall", "nvshmem", "cross_device_reduce"}},
    {KernelClass::kIndex, {"embedding"}},
    {KernelClass::kAttention, {"attn", "attention", "flash_fwd", "flash_bwd", "fmha", "_mha_"}},
    {KernelClass::kOptimizer,
     {"multi_tensor", "adam", "adagrad", "lambfunctor", "lambstage", "sgdfunctor", "fused_sgd",
      "fused_optimizer", "sgd_kernel", "rmsprop"}},
    {KernelClass::kSoftmax, {"softmax", "nll_loss", "nllloss", "cross_entropy", "crossentropy"}},
    {KernelClass::kNorm,
     {"layer_norm", "layernorm", "batch_norm", "batchnorm", "group_norm", "groupnorm", "rms_norm",
      "rmsnorm", "instance_norm", "bn_fw", "bn_bw", "welford", "rowwisemoments",
      "computeinternalgradients", "gammabeta", "cucomputegradinput"}},
    {KernelClass::kCopy,
     {"nchwtonhwc", "nhwctonchw", "transpose", "catarray", "im2col", "col2im", "permute",
      "subtensorop"}},
    {KernelClass::kConv, {"conv2d",        "conv1d",       "conv3d",      "conv_",     "_conv",
                          "conv::",        "4conv",        "convolution", "convolve",  "winograd",
                          "scudnn",        "hcudnn",       "dgrad",       "wgrad",     "fprop",
                          "implicit_gemm", "igemm_fwd",    "igemm_bwd",   "igemm_wrw", "fft2d",
                          "gcgemm",        "miopensp3asm", "cudnn::cnn"}},
    {KernelClass::kGemm,
     {"gemm", "cijk_", "nvjet", "matmul", "gemv", "bmm_", "splitkreduce", "fused_moe_kernel",
      "cutlass", "xmma", "cublas", "dot_kernel", "_mm_", "mm_kernel", "reduce_1block"}},
    {KernelClass::kPool, {"pool", "upsample", "interpolate"}},
    {KernelClass::kIndex,
     {"index", "gather", "scatter", "radixsort", "radix_sort", "mergesort", "bitonicsort", "topk",
      "histogram", "searchsorted", "masked_select", "nonzero", "moe", "routing", "deviceselect",
      "unique_by_key", "sparse_features", "jagged"}},
    {KernelClass::kCopy,
     {"copy", "fillfunctor", "fill_", "memset", "memcpy", "arange", "pack_", "cast_kernel",
      "reshape_and_cache", "triu_tril"}},
    {KernelClass::kReduce,
     {"reduce", "cumsum", "devicescan", "tensor_kernel_scan", "argmax", "argmin", "norm_kernel",
      "sum_kernel"}},
    {KernelClass::kElementwise,
     {"elementwise",    "pointwise", "functor",  "act_and_mul", "silu",
      "gelu",           "swiglu",    "dropout",  "rotary",      "rope",
      "distribution",   "op_tensor", "optensor", "bias",        "kernelpointwise",
      "tensoriterator", "cunn_",     "add_",     "mul_",        "where"}},
};

// PyTorch's own frames carry the work as a template argument whose words would mislead.
KernelClass ClassifyElementwise(std::string_view name) {
  if (ContainsAny(name, {"batch_norm", "layer_norm"})) return KernelClass::kNorm;
  if (ContainsAny(name, {"index_elementwise", "index_kernel", "index_put"}))
    return KernelClass::kIndex;
  if (ContainsAny(name, {"copy_kernel", "fillfunctor"})) return KernelClass::kCopy;
  return KernelClass::kElementwise;
}

// TorchInductor says in the name whether a kernel is pointwise or reduces; what was fused follows.
KernelClass ClassifyInductor(std::string_view name) {
  if (ContainsAny(name, {"triton_poi_", "triton__"})) return KernelClass::kElementwise;
  if (ContainsAny(name, {"triton_tem_"})) {
    if (ContainsAny(name, {"attention"})) return KernelClass::kAttention;
    return ContainsAny(name, {"conv"}) ? KernelClass::kConv : KernelClass::kGemm;
  }
  if (ContainsAny(name, {"softmax"})) return KernelClass::kSoftmax;
  if (ContainsAny(name, {"norm", "var_mean", "rsqrt"})) return KernelClass::kNorm;
  return KernelClass::kReduce;
}

KernelClass ClassOf(std::string_view name) {
  if (ContainsAny(name, {"triton_poi_", "triton_red_", "triton_per_", "triton_tem_", "triton__"})) {
    return ClassifyInductor(name);
  }
  if (ContainsAny(name, {"elementwise_kernel"}) && !ContainsAny(name, {"nccl"})) {
    return ClassifyElementwise(name);
  }
  if (ContainsAny(name, {"at::native::reduce_kernel"})) return KernelClass::kReduce;
  for (const ClassRule& rule : kRules) {
    if (ContainsAny(name, rule.words)) return rule.kind;
  }
  return KernelClass::kOther;
}

// AMD's Tensile: Cijk_Alik_Bljk_<types>_..., where B is bf16, H half, S single, D double.
DType TensileDType(std::string_view name) {
  if (ContainsAny(name, {"_bbs_", "_b_bs_", "_bs_bh", "_bb_", "_bss_"})) return DType::kBf16;
  if (ContainsAny(name, {"_hhs_", "_h_hs_", "_hs_bh", "_hb_", "_hhh_", "_hss_"}))
    return DType::kFp16;
  if (ContainsAny(name, {"_f8", "_b8"})) return DType::kFp8;
  if (ContainsAny(name, {"_i8"})) return DType::kInt8;
  if (ContainsAny(name, {"_db_", "_dd_"})) return DType::kFp64;
  return DType::kFp32;
}

// cuBLAS for Hopper and newer: the letter after nvjet_ is the type of the operands.
DType NvjetDType(std::string_view name) {
  const size_t at = name.find("nvjet_");
  const char letter = at + 6 < name.size() ? name[at + 6] : ' ';
  switch (letter) {
    case 't':
      return DType::kBf16;
    case 'h':
      return DType::kFp16;
    case 's':
      return DType::kTf32;
    case 'q':
      return DType::kFp8;
    case 'd':
      return DType::kFp64;
    default:
      return DType::kUnknown;
  }
}

DType DTypeOf(std::string_view name) {
  if (ContainsAny(name, {"cijk_"})) return TensileDType(name);
  if (ContainsAny(name, {"nvjet_"})) return NvjetDType(name);
  if (ContainsAny(name, {"tf32", "xf32"})) return DType::kTf32;
  // CUTLASS: e2m1 operands with scales in ue4m3 (NVFP4) or ue8m0 (MXFP4).
  if (ContainsAny(name, {"ue4m3xe2m1", "nvfp4"})) return DType::kNvfp4;
  if (ContainsAny(name, {"e4m3", "e5m2", "fp8", "float8", "mxfp"})) return DType::kFp8;
  if (ContainsAny(name, {"bf16", "bfloat16", "df16b"})) return DType::kBf16;
  if (ContainsAny(name, {"f16", "fp16", "half", "h884", "h1688", "h16816", "hgemm", "hcudnn"})) {
    return DType::kFp16;
  }
  if (ContainsAny(name, {"int8", "i8i8", "imma", "i8816", "s8_"})) return DType::kInt8;
  // Single-precision accumulation without a word on the operands.
  if (ContainsAny(name, {"s1688"})) return DType::kTf32;
  if (ContainsAny(name, {"s16816", "s884", "s161616"})) return DType::kFp16;
  if (ContainsAny(name, {"double", "dgemm", "f64"})) return DType::kFp64;
  if (ContainsAny(name, {"float", "sgemm", "scudnn", "f32", "gcgemm"})) return DType::kFp32;
  return DType::kUnknown;
}

bool UsesTensorCores(std::string_view name, KernelClass kind, DType dtype) {
  if (kind != KernelClass::kGemm && kind != KernelClass::kConv && kind != KernelClass::kAttention) {
    return false;
  }
  // AMD's matrix units take fp32 too, at a rate that fp16 beats: only the narrow types count.
  if (dtype == DType::kFp32 || dtype == DType::kFp64) return false;
  if (ContainsAny(name, {"cijk_"})) return ContainsAny(name, {"_mi"});
  if (ContainsAny(name, {"ffma", "gemv", "gemmsn", "splitkreduce", "winograd"})) return false;
  if (ContainsAny(name, {"tensorop", "wmma", "mma", "884", "1688", "16816", "161616", "_tensor",
                         "nvjet", "xmma", "gtcx", "xdl", "tcgen"})) {
    return true;
  }
  // Kernels written by hand or by Triton: narrow types are there for the tensor cores.
  return dtype == DType::kFp16 || dtype == DType::kBf16 || dtype == DType::kFp8 ||
         dtype == DType::kNvfp4 || dtype == DType::kTf32;
}

}  // namespace

std::string_view KernelClassName(KernelClass c) { return kClassNames[static_cast<size_t>(c)]; }

KernelClass FindKernelClass(std::string_view name, bool* found) {
  for (size_t i = 0; i < kClassNames.size(); ++i) {
    if (kClassNames[i] == name) {
      *found = true;
      return static_cast<KernelClass>(i);
    }
  }
  *found = false;
  return KernelClass::kOther;
}

KernelTraits ClassifyKernel(std::string_view name) {
  const std::string lower = LowerHead(name);
  KernelTraits traits;
  traits.kind = ClassOf(lower);
  traits.dtype = DTypeOf(lower);
  traits.tensor_cores = UsesTensorCores(lower, traits.kind, traits.dtype);
  return traits;
}

}  // namespace daydream
