// Writes the synthetic traces of this folder: make_synthetic DIRECTORY. The same bytes each time.
#include <cstdio>
#include <string>

#include "base/status.h"
#include "examples/models.h"
#include "trace/ddtrace/writer.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_synthetic DIRECTORY\n");
    return 2;
  }
  for (const daydream::examples::Model& model : daydream::examples::Models()) {
    std::string path = std::string(argv[1]) + "/" + std::string(model.name) + "-synthetic.ddtrace";
    auto trace = model.make();
    absl::Status status = trace.status();
    if (status.ok()) status = daydream::WriteDdtrace(**trace, path, {.overwrite = true});
    if (!status.ok()) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), std::string(status.message()).c_str());
      return 1;
    }
    std::printf("%s: %zu events\n", path.c_str(), (*trace)->rows());
  }
}
