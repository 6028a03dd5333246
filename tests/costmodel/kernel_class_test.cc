#include "costmodel/kernel_class.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "trace/importer.h"

namespace daydream {
namespace {

struct Case {
  std::string_view name;
  KernelClass kind;
  DType dtype;
  bool tensor_cores;
};

TEST(ClassifyKernel, KnowsClassTypeAndUnit) {
  using enum KernelClass;
  const Case cases[] = {
      {"volta_sgemm_128x64_nn", kGemm, DType::kFp32, false},
      {"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", kGemm, DType::kFp16, true},
      {"ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_stages_32x1_tn", kGemm, DType::kBf16, true},
      {"volta_h884gemm_128x128_ldg8_nn", kGemm, DType::kFp16, true},
      {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1>", kGemm,
       DType::kTf32, true},
      {"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4",
       kGemm, DType::kFp32, false},
      {"sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw", kConv,
       DType::kTf32, true},
      {"nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT", kGemm, DType::kBf16, true},
      {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1", kGemm, DType::kBf16,
       true},
      {"Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1", kGemm, DType::kFp32, false},
      {"igemm_wrw_gtcx2_nhwc_bf16_bx0_ex1_bt256x128x16", kConv, DType::kBf16, true},
      {"cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1", kConv, DType::kFp32, false},
      {"void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>", kConv, DType::kFp32,
       false},
      {"void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>", kNorm, DType::kFp32,
       false},
      {"void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>", kCopy, DType::kFp32,
       false},
      {"void pytorch_flash::flash_fwd_kernel<..., cutlass::bfloat16_t>", kAttention, DType::kBf16,
       true},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
       kElementwise, DType::kFp32, false},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>", kCopy,
       DType::kFp32, false},
      {"void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::",
       kCopy, DType::kUnknown, false},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, NormTwoOps>>", kReduce,
       DType::kFp32, false},
      {"triton_poi_fused_convolution_relu_3", kElementwise, DType::kUnknown, false},
      {"triton_red_fused__softmax_0", kSoftmax, DType::kUnknown, false},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, "
       "AdamFunctor<float>>",
       kOptimizer, DType::kFp32, false},
      {"fused_optimizer", kOptimizer, DType::kUnknown, false},  // of the optimization fuse
      {"ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", kComm,
       DType::kFp16, false},
      {"split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel<float>", kIndex,
       DType::kFp32, false},
      {"void cutlass::device_kernel<cutlass3x_sm100_bstensorop_s128x256x64gemm_block_scaled_"
       "ue4m3xe2m1_ue4m3xe2m1_f32_bf16_bf16_128x256x256>",
       kGemm, DType::kNvfp4, true},
      {"a name that says nothing", kOther, DType::kUnknown, false},
      {"", kOther, DType::kUnknown, false},
  };
  for (const Case& c : cases) {
    const KernelTraits traits = ClassifyKernel(c.name);
    EXPECT_EQ(KernelClassName(traits.kind), KernelClassName(c.kind)) << c.name;
    EXPECT_EQ(DTypeName(traits.dtype), DTypeName(c.dtype)) << c.name;
    EXPECT_EQ(traits.tensor_cores, c.tensor_cores) << c.name;
  }
}

TEST(ClassifyKernel, ClassNamesAreFoundAgain) {
  bool found = false;
  EXPECT_EQ(FindKernelClass("conv", &found), KernelClass::kConv);
  EXPECT_TRUE(found);
  FindKernelClass("convolution", &found);
  EXPECT_FALSE(found);
}

TEST(ClassifyKernel, LeavesLittleKernelTimeOfRealTracesUnclassified) {
  const std::filesystem::path root = DAYDREAM_DATA_DIR "/traces";
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root, error)) {
    if (entry.path().string().ends_with(".json.gz")) files.push_back(entry.path());
  }
  if (files.empty() || FindImporter("kineto") == nullptr) {
    GTEST_SKIP() << "no real traces beside the repository";
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const auto imported = ImportFile(file);
    if (!imported.ok()) continue;
    const Trace& trace = **imported;
    std::map<NameId, int64_t> time_of;
    for (size_t row = 0; row < trace.rows(); ++row) {
      if (trace.kind[row] == EventKind::kKernel) time_of[trace.name[row]] += trace.duration[row].ns;
    }
    int64_t all = 0, other = 0, on_tensor_cores = 0;
    for (const auto& [name, ns] : time_of) {
      const KernelTraits traits = ClassifyKernel(trace.Name(name));
      all += ns;
      on_tensor_cores += traits.tensor_cores ? ns : 0;
      if (traits.kind != KernelClass::kOther) continue;
      other += ns;
    }
    if (all == 0) continue;
    const double share = 100.0 * static_cast<double>(other) / static_cast<double>(all);
    fmt::print("{:5.1f} % unclassified, {:5.1f} % on tensor cores, {}\n", share,
               100.0 * static_cast<double>(on_tensor_cores) / static_cast<double>(all),
               file.filename().string());
    EXPECT_LT(share, 5.0) << file;
  }
}

}  // namespace
}  // namespace daydream
