// Memory of a vector that is of no more use.
#pragma once

namespace daydream {

// Gives it back. `v = {}` empties a vector and keeps what it holds for later.
template <class Vector>
void Release(Vector& v) {
  Vector().swap(v);
}

}  // namespace daydream
