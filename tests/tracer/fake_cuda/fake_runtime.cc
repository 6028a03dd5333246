// CUDA graphs of the fake driver, and the few runtime functions that tests need. Each runtime call
// makes the driver call that the real one makes.
#include <utility>

#include <cudaProfiler.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <cupti.h>

#include "tests/tracer/fake_cuda/fake_driver.h"

using daydream::Call;
using daydream::FakeShape;
using daydream::FakeWork;
using daydream::StreamOf;
using daydream::Tool;

namespace {

std::atomic<uint32_t> g_node_id, g_graph_id;

cudaError_t Runtime(CUresult result) {
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

CUgraphNode daydream::AddNode(CUgraph graph, CUfunction function, const FakeShape& shape) {
  auto* node = new CUgraphNode_st{NextId(g_node_id), function, shape};
  graph->nodes.push_back(node);
  if (auto* tool = Tool()) {
    tool->graph({.cbid = CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, .graph = graph, .node = node});
  }
  return node;
}

extern "C" {

uint64_t fake_cuda_node_id(CUgraphNode node) { return node->id; }
uint32_t fake_cuda_graph_id(CUgraph graph) { return graph->id; }
uint32_t fake_cuda_exec_id(CUgraphExec exec) { return exec->id; }

CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphCreate);
  *graph = new CUgraph_st{daydream::NextId(g_graph_id), {}};
  if (auto* tool = Tool())
    tool->graph({.cbid = CUPTI_CBID_RESOURCE_GRAPH_CREATED, .graph = *graph});
  return CUDA_SUCCESS;
}
CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                              const CUDA_KERNEL_NODE_PARAMS* p) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode_v2);
  FakeShape shape{{p->gridDimX, p->gridDimY, p->gridDimZ},
                  {p->blockDimX, p->blockDimY, p->blockDimZ},
                  p->sharedMemBytes};
  *node = daydream::AddNode(graph, p->func, shape);
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2);
  CUgraph& capture = StreamOf(stream).capture;
  if (capture != nullptr) return call.Return(CUDA_ERROR_ILLEGAL_STATE);
  return call.Return(cuGraphCreate(&capture, 0));
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture);
  *graph = std::exchange(StreamOf(stream).capture, nullptr);
  return call.Return(*graph == nullptr ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS);
}
CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags);
  // The copy of the graph inside of the exec has the exec's number.
  auto* copy = new CUgraph_st{daydream::NextId(g_graph_id), {}};
  *exec = new CUgraphExec_st{copy->id, {}};
  for (CUgraphNode original : graph->nodes) {
    auto* node = new CUgraphNode_st(*original);
    node->id = daydream::NextId(g_node_id);
    (*exec)->nodes.push_back(node);
    if (auto* tool = Tool()) {
      tool->graph({CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, copy, graph, node, original, nullptr, 0});
    }
  }
  if (auto* tool = Tool()) {
    tool->graph({.cbid = CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED,
                 .graph = graph,
                 .exec = *exec,
                 .exec_id = (*exec)->id});
  }
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  Call call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
  FakeWork whole;
  whole.kind = daydream::FakeWorkKind::kGraph;
  whole.correlation = call.correlation();
  whole.graph = exec->id;
  whole.stream = StreamOf(stream).id;
  for (CUgraphNode node : exec->nodes) {
    FakeWork work = whole;
    work.kind = daydream::FakeWorkKind::kKernel;
    work.name = node->function->name.c_str();
    work.shape = node->shape;
    work.node = node->id;
    int64_t start = daydream::Enqueue(StreamOf(stream), work, daydream::FakeKernelNs());
    if (whole.start == 0) whole.start = start;
    whole.end = start + daydream::FakeKernelNs();
  }
  if (auto* tool = Tool()) tool->work(whole);
  return CUDA_SUCCESS;
}

// A function pointer of the runtime is the driver's handle here.
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                             size_t shared, cudaStream_t stream) {
  Call call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
  auto handle = static_cast<CUfunction>(const_cast<void*>(function));
  return Runtime(cuLaunchKernel(handle, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                static_cast<unsigned>(shared), stream, args, nullptr));
}
cudaError_t cudaMemcpyAsync(void*, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  Call call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020);
  return Runtime(cuMemcpyHtoDAsync(0, from, bytes, stream));
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Call call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020);
  return Runtime(cuStreamSynchronize(stream));
}
cudaError_t cudaDeviceSynchronize() {
  Call call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020);
  return Runtime(cuCtxSynchronize());
}
cudaError_t cudaGetDevice(int* device) {
  Call call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020);
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceReset() {
  Call call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020);
  return cudaSuccess;
}
cudaError_t cudaProfilerStart() {
  Call call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000);
  return Runtime(cuProfilerStart());
}
cudaError_t cudaProfilerStop() {
  Call call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000);
  return Runtime(cuProfilerStop());
}

}  // extern "C"
