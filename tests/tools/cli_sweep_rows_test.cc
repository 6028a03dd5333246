// Rows of a sweep beside what whatif says about the same scenario.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/real_traces.h"
#include "tests/tools/sweep_fixture.h"

namespace daydream {
namespace {

using testing::HasSubstr;

TEST_F(Sweeping, RowsAreWhatWhatifSays) {
  nlohmann::json all = nlohmann::json::parse(Run(Ask("--format json")).out);
  ASSERT_EQ(all["rows"].size(), kRows);
  for (size_t i : {size_t{0}, size_t{8}, kRows - 2}) {
    const nlohmann::json& row = all["rows"][i];
    CliResult r = Run(std::string("whatif ") + kExampleTrace + " --no-alone --no-interval --opt '" +
                      row["opt"].get<std::string>() + "' --format json");
    nlohmann::json whatif = nlohmann::json::parse(r.out);
    EXPECT_EQ(row["step_ns"], whatif["scenarios"][1]["step_ns"]);
    // Also where nothing of it changes.
    EXPECT_EQ(row["memory_change_bytes"], whatif["scenarios"][1]["memory_change_bytes"]);
  }
  // What finds nothing to change is a row of its own.
  EXPECT_EQ(all["rows"][kRows - 1]["error"], "E0601");
  EXPECT_TRUE(all["rows"][kRows - 1]["step_ns"].is_null());
}

// Of the scenario that one row asks for, every field that both have.
void ExpectAlike(const nlohmann::json& row, const nlohmann::json& scenario) {
  for (const char* field : {"step_ms", "median_ms", "steps_ms", "interval_ms", "speedup",
                            "speedup_interval", "throughput_gain", "bound", "confidence"}) {
    ASSERT_TRUE(row.contains(field)) << field;
    EXPECT_EQ(row[field], scenario[field]) << field << " of " << row["opt"];
  }
}

TEST_F(Sweeping, RowsHaveTheFieldsAndIntervalsOfAScenario) {
  std::vector<std::string> asks = {kExampleTrace};
  for (const char* name :
       {"gpus/bert-small.h100.json.gz", "gpus/resnet50-bs32.v100-sxm2.json.gz"}) {
    if (!RealTraces().empty()) asks.push_back((RealTraceFolder() / name).string());
  }
  if (asks.size() > 1) asks.push_back(asks[1] + " --true-step 4ms");
  for (const std::string& ask : asks) {
    SCOPED_TRACE(ask);
    const std::string opts = ask + " --opt 'speedup(kernel:.,by=1.5)' --opt graphs --format json ";
    const auto sweep = nlohmann::json::parse(Run("sweep " + opts).out);
    const auto whatif = nlohmann::json::parse(Run("whatif " + opts).out);
    EXPECT_EQ(sweep["measured_ms"], whatif["replay"]["measured_ms"]);
    EXPECT_EQ(sweep["step_ms"], whatif["scenarios"][0]["step_ms"]);
    ASSERT_EQ(whatif["scenarios"].size(), 3u);
    for (const auto& row : sweep["rows"]) {
      const auto& scenarios = whatif["scenarios"];
      const bool first = row["opt"].get<std::string>().starts_with("speedup") ==
                         scenarios[1]["name"].get<std::string>().starts_with("speedup");
      ExpectAlike(row, scenarios[first ? 1 : 2]);
    }
  }
  if (asks.size() > 1) {
    EXPECT_THAT(Run("sweep " + asks.back() + " --opt graphs").out,
                HasSubstr("true step 4.00 ms, recorded "));
  }
}

}  // namespace
}  // namespace daydream
