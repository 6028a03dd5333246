// Networks: curves over sizes, the built-in fabrics against the sweeps that they rest on, and times
// at other numbers of ranks.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "costmodel/network/collective_time.h"
#include "costmodel/network/fabric_text.h"
#include "costmodel/network/fabric_texts.h"
#include "costmodel/network/size_curve.h"

namespace daydream {
namespace {

double TimeOn(std::string_view fabric, CollectiveKind kind, double bytes, int ranks) {
  const auto time =
      TimeOfCollective(*FindFabric(fabric), {.kind = kind, .bytes = bytes, .ranks = ranks});
  EXPECT_TRUE(time.ok()) << time.status();
  return time.ok() ? time->us : -1;
}

TEST(SizeCurve, FindsTheTermsThatMadeThePoints) {
  std::vector<SizePoint> points;
  for (double bytes = 1024; bytes < 1e9; bytes *= 4) {
    points.push_back({bytes, 20 + 0.01 * std::sqrt(bytes) + bytes * 1e-5});
  }
  const SizeCurve curve = FitSizeCurve(points);
  EXPECT_NEAR(curve.a_us, 20, 1e-6);
  EXPECT_NEAR(curve.g_us, 0.01, 1e-9);
  EXPECT_NEAR(curve.us_per_byte, 1e-5, 1e-12);
  EXPECT_LT(ErrorOfFit(curve).most, 1e-6);
  EXPECT_LT(ErrorLeftOut(curve).most, 1e-6);
}

// By the nearest rank: 95 % of three values are all of them.
TEST(SizeCurve, FewSizesHaveTheLargestErrorAsTheir95thPercentile) {
  std::vector<SizePoint> points;
  points.reserve(7);
  for (int i = 0; i < 7; ++i) {
    points.push_back({std::pow(4.0, i + 5), i == 3 ? 400.0 : 30 + 10.0 * i});
  }
  const SizeCurve curve = FitSizeCurve(points);
  EXPECT_EQ(ErrorLeftOut(curve).sizes, 3u);
  EXPECT_GT(ErrorLeftOut(curve).most, 0.5);
  EXPECT_EQ(ErrorLeftOut(curve).p95, ErrorLeftOut(curve).most);
  EXPECT_EQ(ErrorOfFit(curve).p95, ErrorOfFit(curve).most);
}

TEST(SizeCurve, TermsAreNeverNegativeAndMeasuredSizesAreMet) {
  const std::vector<SizePoint> points = {
      {1024, 50}, {1 << 20, 45}, {1 << 25, 300}, {1 << 30, 8000}};
  const SizeCurve curve = FitSizeCurve(points);
  EXPECT_GE(curve.a_us, 0);
  EXPECT_GE(curve.g_us, 0);
  EXPECT_GE(curve.us_per_byte, 0);
  for (const SizePoint& p : points) EXPECT_NEAR(curve.At(p.bytes), p.us, 1e-9 * p.us);
  EXPECT_GT(curve.At(1 << 27), 300);
  EXPECT_LT(curve.At(1 << 27), 8000);
  // Beyond the last size it grows like long messages do.
  EXPECT_NEAR(curve.At(std::pow(2, 31)) / 8000, 2, 0.1);
}

TEST(SizeCurve, OneSizeTwiceIsItsMedianAndRubbishIsLeftOut) {
  const std::vector<SizePoint> points = {{1024, 10}, {1024, 12},           {1024, 90}, {0, 5},
                                         {2048, -1}, {4096, std::nan("")}, {8192, 20}};
  const SizeCurve curve = FitSizeCurve(points);
  EXPECT_THAT(curve.points, testing::ElementsAre(SizePoint{1024, 12}, SizePoint{8192, 20}));
}

TEST(Fabric, EachTextIsReadAndWrittenBack) {
  EXPECT_GE(Fabrics().size(), 13u);
  for (const FabricText& file : FabricTexts()) {
    const auto fabric = FabricOfText(file.text, file.file);
    ASSERT_TRUE(fabric.ok()) << file.file << ": " << fabric.status();
    EXPECT_EQ(std::string(file.file), fabric->name + ".textproto");
    EXPECT_FALSE(fabric->source.empty()) << file.file;
    for (const FabricLevel& level : fabric->levels) {
      for (const FabricCurve& c : level.all_reduce) EXPECT_FALSE(c.source.empty()) << file.file;
      for (const FabricCurve& c : level.other) EXPECT_FALSE(c.source.empty()) << file.file;
    }
    const auto again = FabricOfText(TextOfFabric(*fabric), "again");
    ASSERT_TRUE(again.ok()) << TextOfFabric(*fabric) << again.status();
    EXPECT_EQ(TextOfFabric(*again), TextOfFabric(*fabric));
  }
}

TEST(Fabric, NamesAndAliasesAreFound) {
  ASSERT_NE(FindFabric("NVLink4"), nullptr);
  EXPECT_EQ(FindFabric("ib-ndr"), FindFabric("roce-8x400"));
  EXPECT_EQ(FindFabric("ib_hdr"), FindFabric("tcpxo-8x200"));
  EXPECT_EQ(FindFabric("token-ring"), nullptr);
  EXPECT_EQ(FabricAsked("IB_NDR")->Title(), "IB_NDR (roce-8x400)");
  EXPECT_EQ(FabricAsked("NVLink4")->Title(), "nvlink4");
}

TEST(Fabric, WhatIsNoFabricIsRefused) {
  for (std::string_view text :
       {"", "x", "fabric {}", "fabric { name: \"a\" }", "fabric { name: \"a\" level { size: 8 } }",
        "fabric { name: \"a\" level { size: -1 gbps_per_rank: 3 } }",
        "fabric { name: \"a\" level { use: \"no such\" } }", "fabric { name: \"a\" overlap: 2 }",
        "fabric { name: \"a\" level { size: 8 all_reduce { a_us: 1 } } }",
        "fabric { name: \"a\" level { size: 8 all_reduce { bus_GBps: 9 point { us: 1 } } } }",
        "fabric { name: \"a\" level { size: 8 all_reduce { ranks: 1 bus_GBps: 9 } } }"}) {
    const auto fabric = FabricOfText(text, "t");
    ASSERT_FALSE(fabric.ok()) << text;
    EXPECT_EQ(DiagnosticOf(fabric.status()).code, "E0821") << text;
  }
}

TEST(CollectiveTime, OneRankSendsNothingAndTooManyAreRefused) {
  EXPECT_EQ(TimeOn("nvlink4", CollectiveKind::kAllReduce, 1e9, 1), 0);
  const auto many = TimeOfCollective(*FindFabric("nvlink4"), {.bytes = 1e9, .ranks = 16});
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(DiagnosticOf(many.status()).code, "E0823");
}

// The sweep of 8 ranks begins at 256 MiB; that of the all-gathers is none.
TEST(CollectiveTime, OnlySizesThatWereMeasuredHaveAnError) {
  const auto on_nvlink4 = [](CollectiveKind kind, double bytes) {
    const auto time =
        TimeOfCollective(*FindFabric("nvlink4"), {.kind = kind, .bytes = bytes, .ranks = 8});
    EXPECT_TRUE(time.ok()) << time.status();
    return *time;
  };
  const CollectiveTime measured = on_nvlink4(CollectiveKind::kAllReduce, 1 << 29);
  EXPECT_EQ(measured.source, TimeSource::kSweep);
  EXPECT_GT(measured.error, 0);
  EXPECT_EQ(measured.explained, "all_reduce measured at 8 ranks on 1");
  const CollectiveTime small = on_nvlink4(CollectiveKind::kAllReduce, 1 << 20);
  EXPECT_EQ(small.source, TimeSource::kFabric);
  EXPECT_EQ(small.error, 0);
  EXPECT_EQ(on_nvlink4(CollectiveKind::kAllReduce, 1e11).beyond, small.beyond);
  TimesFrom from;
  for (const CollectiveTime& time : {measured, small, measured}) from.Add(time);
  EXPECT_THAT(from.Lines(), testing::ElementsAre("all_reduce measured at 8 ranks on 1 (only 268.4 "
                                                 "MB to 2.147 GB)"));
  const CollectiveTime gather = on_nvlink4(CollectiveKind::kAllGather, 1 << 29);
  EXPECT_EQ(gather.source, TimeSource::kFabric);
  EXPECT_EQ(gather.explained, "all_gather stated (not measured) at 8 ranks on 1");
}

TEST(CollectiveTime, GrowsWithTheMessageAndWithTheRanks) {
  for (const Fabric& fabric : Fabrics()) {
    const int most = fabric.levels.size() > 1 ? 1024 : fabric.NodeSize();
    for (CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                CollectiveKind::kAllToAll, CollectiveKind::kBroadcast}) {
      double before = 0;
      for (double bytes = 1; bytes < 1e10; bytes *= 3) {
        const double us = TimeOn(fabric.name, kind, bytes, most);
        EXPECT_GT(us, before) << fabric.name << " " << CollectiveName(kind) << " " << bytes;
        before = us;
      }
    }
    for (double bytes : {1e3, 1e8}) {
      // Across nodes: more of them never make an all-reduce faster.
      const double few = TimeOn(fabric.name, CollectiveKind::kAllReduce, bytes, most / 2);
      const double all = TimeOn(fabric.name, CollectiveKind::kAllReduce, bytes, most);
      if (most > 8) {
        EXPECT_GE(all, few * 0.999) << fabric.name << " " << bytes;
      }
    }
  }
}

// A two-node all-reduce may exceed the wire: 488 GB/s of bus bandwidth on 400 GB/s of NICs.
TEST(CollectiveTime, MoreThanTwoNodesNeverExceedTheWire) {
  const auto two = TimeOfCollective(*FindFabric("efa3200"), {.bytes = 16e9, .ranks = 16});
  const auto eight = TimeOfCollective(*FindFabric("efa3200"), {.bytes = 16e9, .ranks = 64});
  ASSERT_TRUE(two.ok() && eight.ok());
  EXPECT_GT(two->bus_gbps, 400);
  EXPECT_LE(eight->bus_gbps, 400);
  EXPECT_EQ(two->source, TimeSource::kSweep);
  EXPECT_EQ(eight->source, TimeSource::kFabric);
}

TEST(CollectiveTime, AnAllReduceIsAReduceScatterAndAnAllGather) {
  const Fabric& fabric = *FindFabric("nvlink3");
  for (double bytes : {1e8, 1e9}) {
    const double both = TimeOn("nvlink3", CollectiveKind::kAllReduce, bytes, 8);
    const double half = TimeOn("nvlink3", CollectiveKind::kAllGather, bytes, 8);
    EXPECT_NEAR(2 * half / both, 1, 0.1) << fabric.name << " " << bytes;
  }
}

TEST(CollectiveTime, AnOversubscribedTreeSlowsWhatLeavesTheLeaf) {
  auto fabric = FabricOfText(
      "fabric { name: \"t\" level { name: \"gpus\" size: 8 gbps_per_rank: 450 } level { name: "
      "\"ib\" "
      "kind: FAT_TREE nic_gbps: 400 nics_per_node: 8 oversubscription: 4 nodes_per_leaf: 2 } }",
      "t");
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  Fabric flat = *fabric;
  flat.levels[1].oversubscription = 1;
  auto ratio = [&](CollectiveKind kind, int ranks) {
    const CollectiveShape shape{.kind = kind, .bytes = 1e9, .ranks = ranks};
    return TimeOfCollective(*fabric, shape)->us / TimeOfCollective(flat, shape)->us;
  };
  EXPECT_DOUBLE_EQ(ratio(CollectiveKind::kAllReduce, 16), 1);   // one leaf
  EXPECT_NEAR(ratio(CollectiveKind::kAllReduce, 64), 2, 0.01);  // 4 / 2 flows for each uplink
  // Three quarters of the bytes leave the leaf, over a quarter of the rate.
  EXPECT_NEAR(ratio(CollectiveKind::kAllToAll, 64), 3, 0.01);
}

// --- the published sweeps, where they are at hand

struct MeasuredSweep {
  std::string collective;
  int ranks = 0, nodes = 0;
  std::vector<SizePoint> points;
};

std::map<std::string, MeasuredSweep> Sweeps() {
  std::map<std::string, MeasuredSweep> sweeps;
  std::ifstream file(std::filesystem::path(DAYDREAM_DATA_DIR) / "netdata" / "nccl_tests.csv");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::string cell;
    bool quoted = false;
    for (char c : line) {
      if (c == '"')
        quoted = !quoted;
      else if (c == ',' && !quoted)
        cells.push_back(std::exchange(cell, {}));
      else
        cell += c;
    }
    cells.push_back(cell);
    if (cells.size() < 8) continue;
    MeasuredSweep& sweep = sweeps[cells[0]];
    sweep.collective = cells[1], sweep.ranks = std::stoi(cells[3]);
    sweep.nodes = std::stoi(cells[4]);
    if (std::stod(cells[6]) >= 1024)
      sweep.points.push_back({std::stod(cells[6]), std::stod(cells[7])});
  }
  return sweeps;
}

struct Errors {
  std::vector<double> all;
  double Mean() const {
    double sum = 0;
    for (double e : all) sum += e;
    return sum / static_cast<double>(all.size());
  }
  double P95() {
    std::sort(all.begin(), all.end());
    return all[static_cast<size_t>(0.95 * static_cast<double>(all.size() - 1))];
  }
};

// Measured: 5.9 % in the mean, 19.3 % p95 over 271 sizes of 16 sweeps.
TEST(Sweeps, BuiltInFabricsReproduceTheSweepsTheyRestOn) {
  const auto sweeps = Sweeps();
  if (sweeps.empty()) GTEST_SKIP() << "no netdata/nccl_tests.csv beside the repository";
  const std::map<std::string, std::string> fabrics = {{"a100-sxm4-40g.2x8.roce", "roce-16x100"},
                                                      {"h100-sxm.1x4.nvlink4", "nvlink4"},
                                                      {"h100-sxm.1x8.nvlink4-nvls", "nvlink4"},
                                                      {"mi300x.1x8.xgmi", "xgmi-mi300x"},
                                                      {"a100-pcie.1x4.nvbridge-pairs", "pcie4"},
                                                      {"a100-pcie.1x2.nc48", "nvbridge"},
                                                      {"p40.2x1.roce25", "eth25-roce"},
                                                      {"efa-k8s.2x8", "efa-k8s"},
                                                      {"efa-2019.2x8.ring-only", "efa100"},
                                                      {"v100.1x8.nvlink2", "nvlink2"},
                                                      {"h100-a3mega.2x8.all_gather", "tcpxo-8x200"},
                                                      {"h200-a3ultra.2x8.all_gather", "roce-8x400"},
                                                      {"h100-a3high.2x8.all_gather", "tcpx-4x200"},
                                                      {"a100-p4de.2x8.efa400", "efa400"},
                                                      {"h100-p5.2x8.efa3200", "efa3200"},
                                                      {"b200-a4.2x8.roce", "roce-8x400"}};
  Errors errors;
  for (const auto& [name, fabric] : fabrics) {
    const auto sweep = sweeps.find(name);
    ASSERT_NE(sweep, sweeps.end()) << name;
    for (const SizePoint& p : sweep->second.points) {
      const auto time =
          TimeOfCollective(*FindFabric(fabric), {.kind = CollectiveNamed(sweep->second.collective),
                                                 .bytes = p.bytes,
                                                 .ranks = sweep->second.ranks,
                                                 .nodes = sweep->second.nodes});
      ASSERT_TRUE(time.ok()) << name << time.status();
      EXPECT_EQ(time->source, TimeSource::kSweep) << name;
      errors.all.push_back(std::abs(time->us / p.us - 1));
    }
  }
  EXPECT_LE(errors.Mean(), 0.08);
  EXPECT_LE(errors.P95(), 0.20);
}

// Measured: 8.2 % in the mean.
TEST(Sweeps, FourSizesAreEnoughForTheRest) {
  const auto sweeps = Sweeps();
  if (sweeps.empty()) GTEST_SKIP() << "no netdata/nccl_tests.csv beside the repository";
  Errors errors;
  for (const auto& [name, sweep] : sweeps) {
    const auto& points = sweep.points;
    std::vector<SizePoint> four = {points.front(), points.back()};
    for (double bytes : {1048576.0, 33554432.0}) {
      four.push_back(*std::min_element(points.begin(), points.end(), [&](auto& a, auto& b) {
        return std::abs(std::log(a.bytes / bytes)) < std::abs(std::log(b.bytes / bytes));
      }));
    }
    const SizeCurve curve = FitSizeCurve(four);
    for (const SizePoint& p : points) {
      const bool given = std::any_of(four.begin(), four.end(),
                                     [&](const SizePoint& f) { return f.bytes == p.bytes; });
      if (!given) errors.all.push_back(std::abs(curve.At(p.bytes) / p.us - 1));
    }
  }
  EXPECT_LE(errors.Mean(), 0.10);
}

}  // namespace
}  // namespace daydream
