// The graphs of the recordings in examples/, for the tests that ask about them.
#pragma once

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "graph/build.h"
#include "trace/importer.h"

namespace daydream {

// Of examples/NAME-synthetic.ddtrace.
inline BuiltGraph Example(const std::string& name) {
  auto trace = ImportFile(DAYDREAM_SOURCE_DIR "/examples/" + name + "-synthetic.ddtrace");
  EXPECT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

}  // namespace daydream
