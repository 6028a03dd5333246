#include "tracer/graph_nodes.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace daydream::tracer {
namespace {

constexpr size_t kMaxWaiting = size_t{1} << 20;

constinit std::mutex mutex;
std::vector<GraphNode>* waiting = nullptr;  // guarded by mutex
constinit std::atomic<uint64_t> dropped{0};

}  // namespace

void NoteGraphNode(const GraphNode& node) {
  const std::lock_guard lock(mutex);
  if (waiting == nullptr) waiting = new std::vector<GraphNode>;
  if (waiting->size() < kMaxWaiting) {
    waiting->push_back(node);
  } else {
    dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

std::vector<GraphNode> TakeGraphNodes() {
  const std::lock_guard lock(mutex);
  return waiting == nullptr ? std::vector<GraphNode>() : std::exchange(*waiting, {});
}

uint64_t DroppedGraphNodes() { return dropped.load(std::memory_order_relaxed); }

void GraphNodesBeforeFork() { mutex.lock(); }

void GraphNodesAfterForkInParent() { mutex.unlock(); }

void GraphNodesAfterForkInChild() {
  mutex.unlock();
  waiting = nullptr;  // the parent's; not freed
}

}  // namespace daydream::tracer
