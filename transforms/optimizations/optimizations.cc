#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

#define TRANSFORM(symbol) &symbol,
constexpr const Transform* kTransforms[] = {
#include "transforms/optimizations/transforms.def"
};
#undef TRANSFORM

}  // namespace

std::span<const Transform* const> Transforms() { return kTransforms; }

const Transform* FindTransform(std::string_view name) {
  for (const Transform* t : kTransforms) {
    if (t->name == name) return t;
  }
  return nullptr;
}

}  // namespace daydream
