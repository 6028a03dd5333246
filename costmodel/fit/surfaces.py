#!/usr/bin/env python3
"""Fits the measured surfaces of matrix products, and says how good they are on shapes left out.

    python3 costmodel/fit/surfaces.py DATA          some minutes; writes costmodel/surfaces/*.txt
    python3 costmodel/fit/surfaces.py DATA --dry    prints the errors only
    python3 costmodel/fit/surfaces.py DATA --format nvfp4    of one format only

DATA is a folder with gemm.csv.gz: products timed by NVIDIA's AIConfigurator (Apache-2.0), inside of
three inference engines. What is fitted is the median of the engines; the spread of their rows around
it is part of the interval. Needs numpy and scipy.

A surface is the wave model of costmodel/surface.cc with constants of its own (drawn towards those that
all GPUs share), times a smooth correction on a grid over log2 of m, n and k, which a GPU with few
shapes learns in part from its other formats and from other GPUs. Errors are of shapes that
were left out: a third of all shapes (by a hash of m, n, k), a third of all weights (by a hash of n, k:
every m of them), and whole GPUs.
"""
import argparse
import collections
import copy
import csv
import gzip
import pathlib
import re
import sys
import zlib

try:
    import numpy as np
    from scipy.linalg import cho_factor, cho_solve
    from scipy.optimize import least_squares
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "surfaces"
HELD_OUT = HERE.parents[1] / "tests" / "costmodel" / "held_out"
DEVICES = {"a100_sxm": "a100_sxm4_80gb", "h100_sxm": "h100_sxm5_80gb", "b200_sxm": "b200_sxm_180gb",
           "l40s": "l40s"}
# Format in the data, ours, field of the description with its peak, bytes of an element of A and of B
# (the weights). nvfp4: with a scale of 8 bits for 16 elements. int8_wo: int8 weights, which the kernel
# makes 16 bit again before it multiplies; its rows reach the peak of 16 bit and no more.
FORMATS = [("bfloat16", "bf16", "bf16_tflops", 2, 2), ("fp8", "fp8", "fp8_tflops", 1, 1),
           ("nvfp4", "nvfp4", "nvfp4_tflops", 0.5625, 0.5625),
           ("int8_wo", "int8_wo", "bf16_tflops", 2, 1)]

TILES = [(256, 128, 0), (128, 256, 0), (128, 128, 1), (128, 64, 2), (64, 128, 2), (64, 64, 3),
         (64, 32, 4), (32, 64, 4)]
# Each row is of six runs of one product after three to warm up, so that its weights are in the
# L2 cache where they fit: all but a tenth, until rows say otherwise.
#         name, where it starts, how far it may be from there (standard deviation of its logarithm)
CONSTANTS = [("launch_kilocycles", 4.0, 0.5), ("rate_share", 0.9, 0.15), ("bandwidth_share", 0.88, 0.1),
             ("l2_speed_share", 0.6, 0.2), ("l2_share", 0.5, 0.7), ("weights_l2_share", 0.15, 0.7),
             ("warm_weights", 10, 1), ("tile_kilocycles", 1.2, 0.7),
             ("step_cycles", 8, 0.7), ("wave_odds", 2, 0.7), ("split_kilocycles", 4, 0.7),
             ("tile_128x128", 1.0, 0.15), ("tile_128x64", 0.9, 0.2), ("tile_64x64", 0.8, 0.3),
             ("tile_64x32", 0.5, 0.5), ("feed_share", 0.6, 0.5), ("blend", 2, 0.3),
             ("ramp_kilocycles", 2, 0.7), ("ragged", 1.1, 0.3), ("cast_kilocycles", 6, 0.7)]
START = np.log([c[1] for c in CONSTANTS])
WIDTH = np.array([c[2] for c in CONSTANTS])

# Nodes of the correction: log2 of m, n, k; its smoothness (Matern 3/2) and the noise of a row.
NODES = [np.arange(0, 16), np.arange(5, 17), np.arange(5, 17)]
LENGTH, SIZE, NOISE = 2.5, 0.15, 0.06
# The noise of shorter products is Student's t of so many degrees of freedom; found in rounds.
FREEDOM, ROUNDS, LONG_US = 2, 8, 256
# Where m is no multiple of 8, other kernels run: a further correction, on a coarser grid.
RAGGED_NODES = [np.arange(0, 16, 3), np.arange(5, 18, 3), np.arange(5, 18, 3)]
RAGGED_SIZE = 0.1
# A table of fewer shapes also learns from so many of each other one of its GPU or of its format, whose
# corrections are alike by so much (a correlation).
FEW, NEIGHBOURS, ALIKE = 900, 300, 0.3
EDGES_US = np.array([4, 8, 16, 64, 256, 1024])  # classes of length with an interval of their own
INSIDE = 0.91  # share of rows that the interval is to hold


class Device:
    def __init__(self, label):
        text = (HERE.parent / "devices" / f"{DEVICES[label]}.textproto").read_text()
        self.field = dict(re.findall(r"^(\w+): ([\d.]+)", text, re.M))
        self.name = re.search(r'^name: "(.*)"', text, re.M).group(1)
        self.processors = float(self.field["multiprocessors"])
        self.boost = float(self.field["boost_clock_mhz"])  # cycles per us
        self.base = float(self.field["base_clock_mhz"])
        self.bandwidth = float(self.field["memory_gb_per_s"]) * 1e3  # bytes per us
        self.l2 = float(self.field["l2_mb"]) * 1e6
        version = tuple(int(self.field[f"compute_{x}"]) for x in ("major", "minor"))
        # Of one processor, as measured: costmodel/surface.cc says by whom.
        self.l2_bytes_per_clock = 36 if version == (8, 0) or version[0] in (9, 10) else 15

    def peak(self, field):
        return float(self.field.get(field, 0)) * 1e6  # FLOPs per us


def wave_model(logs, shapes, device, peak, element, weight_element):
    """Microseconds; costmodel/surface.cc says what the terms are."""
    c = dict(zip([x[0] for x in CONSTANTS], np.exp(logs)))
    m, n, k = shapes.T
    kilocycle = 1000 / device.boost  # short kernels run at boost
    efficiency = np.minimum([1, c["tile_128x128"], c["tile_128x64"], c["tile_64x64"],
                             c["tile_64x32"]], 1.3)
    waves_count = c["wave_odds"] / (1 + c["wave_odds"])
    rate = peak * np.sqrt(device.base / device.boost) * c["rate_share"] / device.processors
    bandwidth = device.bandwidth * c["bandwidth_share"]
    reads = device.l2_bytes_per_clock * device.processors * device.boost
    from_l2 = max(c["l2_speed_share"] * reads, bandwidth)
    moved = element * m * k + weight_element * n * k + 2 * m * n
    # What the engine has just written or read is in the cache; of weights, what `warm_weights` says.
    passing, weights = element * m * k + 2 * m * n, weight_element * n * k
    cached = passing / (1 + (passing / (c["l2_share"] * device.l2)) ** 5)
    cached = cached + weights * (c["warm_weights"] / (1 + c["warm_weights"])
                                 / (1 + (moved / (c["weights_l2_share"] * device.l2)) ** 5))
    memory = ((moved - cached) / bandwidth + cached / from_l2
              + c["ramp_kilocycles"] * kilocycle * np.minimum(1, moved / 4e6))
    power = 1 + c["blend"]
    ragged = np.where(m % 8 == 0, 1, c["ragged"])
    best = np.full(len(shapes), np.inf)
    for rows, columns, kind in TILES:
        tiles = np.ceil(m / rows) * np.ceil(n / columns)
        for split in (1, 2, 4, 8, 16):
            waves = tiles * split / device.processors
            rounds = waves_count * np.ceil(waves) + (1 - waves_count) * np.maximum(waves, 1)
            part = k / split
            multiply = 2 * rows * columns * part / (rate * efficiency[kind]) * ragged
            feed = element * part * (rows + columns) / (64 * device.boost * c["feed_share"])
            tile = np.hypot(multiply, feed) + (part * c["step_cycles"] / 64
                                               + 1000 * c["tile_kilocycles"]) / device.boost
            move = memory + (split * m * n * 8 / from_l2 if split > 1 else 0)
            time = ((rounds * tile) ** power + move ** power) ** (1 / power)
            if split > 1:
                time = np.where(part < 128, np.inf, time + c["split_kilocycles"] * kilocycle)
            best = np.minimum(best, time)
    if element < 2:  # the rows hold the cast of A
        best = best + c["cast_kilocycles"] * kilocycle + (2 + element) * m * k / from_l2
    return c["launch_kilocycles"] * kilocycle + best


class Table:
    """Rows of a GPU and format: shapes, log of the median of their engines, the rows of each."""

    def __init__(self, rows, label, source, name, field, element, weight_element):
        by_shape = collections.defaultdict(list)
        for r in rows:
            if r["gpu"] == label and r["gemm_dtype"] == source:
                by_shape[tuple(int(r[x]) for x in "mnk")].append((r["engine"], float(r["us"])))
        self.device, self.name = Device(label), name
        self.element, self.weight_element = element, weight_element
        self.peak = self.device.peak(field)
        self.shapes = np.array(sorted(by_shape), float).reshape(-1, 3)
        self.rows = [by_shape[s] for s in sorted(by_shape)]
        self.log_us = np.array([np.median([np.log(us) for _, us in r]) for r in self.rows])
        self.few = len(self.shapes) < FEW
        self.choose()

    def choose(self):
        """Enough shapes for a few constants: of all GPUs, and of this one, where each long product
        counts, too."""
        order = np.random.default_rng(1).permutation(len(self.shapes))
        long = np.flatnonzero(self.log_us > np.log(LONG_US))
        self.some, self.many = np.sort(order[:700]), np.union1d(order[:1400], long)

    def without(self, fold):
        rest = np.flatnonzero(folds(self, "shape") != fold)
        kept = copy.copy(self)
        kept.shapes, kept.log_us = self.shapes[rest], self.log_us[rest]
        kept.rows = [self.rows[i] for i in rest]
        kept.choose()
        return kept

    def model(self, logs, pick=slice(None)):
        return np.log(wave_model(logs, self.shapes[pick], self.device, self.peak, self.element,
                                 self.weight_element))


def learn_constants(tables):
    """Those that a format's GPUs share, then those of each table."""
    for name in sorted({t.name for t in tables}):
        same = [t for t in tables if t.name == name]
        shared = shared_constants(same)
        for t in same:
            t.logs = own_constants(t, shared)


def shared_constants(tables):
    def off(logs):
        parts = [(t.model(logs, t.some) - t.log_us[t.some]) / 0.15 for t in tables]
        return np.concatenate(parts + [2 * (logs - START) / WIDTH])
    return least_squares(off, START, loss="soft_l1", diff_step=1e-3, max_nfev=25).x


def own_constants(table, shared):
    def off(logs):
        return np.concatenate([(table.model(logs, table.many) - table.log_us[table.many]) / 0.1,
                               3 * (logs - shared) / WIDTH])
    return least_squares(off, shared, loss="soft_l1", diff_step=1e-3, max_nfev=40).x


def smooth(at, values, ragged, long, table, where):
    """The correction of table 0 at other points, and what is added to it where m is ragged: a Gaussian
    process with a Matern 3/2 kernel, and a second one among ragged shapes only."""
    def kernel(a, b):
        square = sum(np.subtract.outer(x, y) ** 2 for x, y in zip(a.T, b.T))
        r = np.sqrt(3 * square / LENGTH ** 2 + 1e-12)
        return (1 + r) * np.exp(-r)
    alike = np.where(table == 0, 1, ALIKE)
    known = kernel(at, at) * np.where(np.equal.outer(table, table), 1, np.outer(alike, alike))
    prior = SIZE ** 2 * known + RAGGED_SIZE ** 2 * known * np.outer(ragged, ragged)
    # The noise is Student's t: rows far off (an engine's odd kernel, a shape of one engine only)
    # count less. Weighted least squares again and again come to its most likely correction. Long
    # products count in full: what they are off by is most of all time.
    noise = np.full(len(at), NOISE ** 2)
    for _ in range(ROUNDS):
        factor = cho_factor(prior + np.diag(noise), overwrite_a=True)
        weights = cho_solve(factor, values)
        # What is left of a row is its noise times its weight.
        far = (FREEDOM * NOISE ** 2 + (noise * weights) ** 2) / (FREEDOM + 1)
        noise = np.where(long, NOISE ** 2, far)
    return (SIZE ** 2 * kernel(where[0], at) @ (alike * weights),
            RAGGED_SIZE ** 2 * kernel(where[1], at) @ (alike * ragged * weights))


def neighbours(table, tables):
    """Other tables, and which of their shapes this one learns from."""
    near = []
    for other in tables if table.few else []:
        if (other.device.name == table.device.name) != (other.name == table.name):
            order = np.random.default_rng(2).permutation(len(other.shapes))
            near.append((other, np.sort(order[:NEIGHBOURS])))
    return near


def on_nodes(table, logs, pick=slice(None), near=()):
    """Whole hundredths at the nodes of the two grids, as the file has them."""
    nodes = [NODES, RAGGED_NODES]
    grids = [np.array(np.meshgrid(*n, indexing="ij")).reshape(3, -1).T.astype(float) for n in nodes]
    parts = [(table, logs, pick), *((other, other.logs, some) for other, some in near)]
    model = [t.model(own, some) for t, own, some in parts]
    off = [t.log_us[some] - m for (t, _, some), m in zip(parts, model)]
    whose = np.concatenate([np.full(len(m), i) for i, m in enumerate(model)])
    model, off = np.concatenate(model), np.concatenate(off)
    shapes = np.concatenate([t.shapes[some] for t, _, some in parts])
    values = smooth(np.log2(shapes), off, (shapes[:, 0] % 8 != 0).astype(float),
                    model > np.log(LONG_US), whose, grids)
    return [np.rint(100 * v).reshape([len(x) for x in n]) for v, n in zip(values, nodes)]


def on_grid(values, nodes, shapes):
    steps = [n[1] - n[0] for n in nodes]
    at = [np.clip((np.log2(shapes[:, i]) - nodes[i][0]) / steps[i], 0, len(nodes[i]) - 1.001)
          for i in range(3)]
    low = [np.floor(a).astype(int) for a in at]
    part = [a - l for a, l in zip(at, low)]
    value = 0
    for corner in range(8):
        bit = [corner >> i & 1 for i in range(3)]
        weight = np.prod([p if b else 1 - p for p, b in zip(part, bit)], 0)
        value = value + weight * values[tuple(l + b for l, b in zip(low, bit))]
    return value / 100


def between_nodes(grids, shapes):
    return (on_grid(grids[0], NODES, shapes)
            + np.where(shapes[:, 0] % 8 != 0, on_grid(grids[1], RAGGED_NODES, shapes), 0))


def of_median(log_us, prediction):
    off = np.abs(np.exp(prediction - log_us) - 1)
    us = np.exp(log_us)
    return 100 * off.mean(), 100 * (off * us).sum() / us.sum()


def of_other_engines(table):
    """A row from the median of the other two engines that timed its shape: how well one engine's time
    is known where the very shape was measured by others."""
    logs = np.array([[np.log(us) for _, us in r] for r in table.rows if len(r) == 3])
    if not len(logs):
        return np.nan, np.nan
    others = (logs.sum(1, keepdims=True) - logs) / 2
    return of_median(logs.ravel(), others.ravel())


def folds(table, by, count=3):
    return np.array([zlib.crc32(("%d,%d,%d" % tuple(s) if by == "shape" else "%d,%d" % tuple(s[1:])
                                 ).encode()) % count for s in table.shapes])


def write_held_out(tables, name):
    """Surfaces that never saw a third of the shapes, constants and interval included: what
    tests/costmodel/kerneldata_test.cc evaluates on that third. Of all formats, which are to learn from
    each other."""
    kept = [t.without(0) for t in tables]
    learn_constants(kept)
    for t in (t for t in kept if name in (None, t.name)):
        near = neighbours(t, kept)
        write(t, t.name, t.logs, on_nodes(t, t.logs, near=near),
              *quantiles(t, left_out(t, t.logs, "shape", count=4, near=near)), folder=HELD_OUT)


def left_out(table, logs, by, count=3, near=()):
    """Predictions of each third of the shapes from the other two thirds, of all tables."""
    prediction, fold = np.zeros(len(table.shapes)), folds(table, by, count)
    for i in range(count):
        rest, out = np.flatnonzero(fold != i), fold == i
        nodes = on_nodes(table, logs, rest, [(other, some[folds(other, by, count)[some] != i])
                                             for other, some in near])
        prediction[out] = table.model(logs, out) + between_nodes(nodes, table.shapes[out])
    return prediction


def quantiles(table, prediction):
    """By length of the prediction: below and above which log ratio (1 - INSIDE) / 2 of rows are."""
    ratio, weight, kind = [], [], []
    for rows, p in zip(table.rows, prediction):
        for _, us in rows:
            ratio.append(np.log(us) - p)
            kind.append(np.searchsorted(EDGES_US, np.exp(p)))
    ratio, kind = np.array(ratio), np.array(kind)
    low, high = [], []
    for i in range(len(EDGES_US) + 1):
        some = ratio[kind == i] if (kind == i).sum() >= 30 else ratio
        low.append(np.quantile(some, (1 - INSIDE) / 2))
        high.append(np.quantile(some, (1 + INSIDE) / 2))
    return low, high


def generation(table):
    major, minor = (float(table.device.field["compute_" + x]) for x in ("major", "minor"))
    return 8.9 if major >= 12 else major + 0.1 * minor  # as costmodel/surface.cc


def unseen(table, tables):
    """Predictions for a GPU from the others alone, constants that all share included."""
    others = [t for t in tables if t is not table]
    shared = shared_constants(others) if len(others) > 1 else START
    weight = np.array([np.exp(-abs(generation(t) - generation(table)) / 3) for t in others])
    logs = np.array([own_constants(t, shared) for t in others])
    return table.model(weight @ logs / weight.sum())


def write_unseen(tables, name, predictions):
    """The interval of a GPU without measurements: that of all GPUs, each left out in turn."""
    ratio, kind = [], []
    for t, prediction in zip(tables, predictions):
        for rows, p in zip(t.rows, prediction):
            ratio += [np.log(us) - p for _, us in rows]
            kind += [np.searchsorted(EDGES_US, np.exp(p))] * len(rows)
    ratio, kind = np.array(ratio), np.array(kind)
    ends = []
    for i in range(len(EDGES_US) + 1):
        some = ratio[kind == i] if (kind == i).sum() >= 30 else ratio
        ends.append(np.quantile(some, [(1 - INSIDE) / 2, (1 + INSIDE) / 2]))
    lines = ["# Made by costmodel/fit/surfaces.py: GPUs predicted from the others alone, off the median of",
             "# the engines, mean / by time, %:"]
    lines += ["# %s: %.1f / %.1f" % (t.device.name, *of_median(t.log_us, p))
              for t, p in zip(tables, predictions)]
    lines += ["device unseen", f"format {name}",
             "low " + " ".join(f"{e[0]:.3f}" for e in ends),
             "high " + " ".join(f"{e[1]:.3f}" for e in ends)]
    (OUT / f"unseen.{name}.txt").write_text("\n".join(lines) + "\n")


def write(table, name, logs, grids, low, high, folder=OUT):
    lines = ["# Made by costmodel/fit/surfaces.py from products that NVIDIA's AIConfigurator timed",
             "# (github.com/ai-dynamo/aiconfigurator, Apache-2.0). The terms: costmodel/surface.h.",
             f"device {table.device.name}", f"format {name}", f"shapes {len(table.shapes)}",
             f"rows {sum(map(len, table.rows))}"]
    lines += [f"{c[0]} {v:.5g}" for c, v in zip(CONSTANTS, np.exp(logs))]
    lines += ["low " + " ".join(f"{v:.3f}" for v in low), "high " + " ".join(f"{v:.3f}" for v in high)]
    for title, nodes in zip(["correction", "ragged_correction"], grids):
        lines += [title]
        for plane in nodes:
            lines += [" ".join(f"{v:.0f}" for v in row) for row in plane + 0.0]
    folder.mkdir(exist_ok=True)
    stem = DEVICES[[k for k in DEVICES if Device(k).name == table.device.name][0]]
    (folder / f"{stem}.{name}.txt").write_text("\n".join(lines).replace("-0 ", "0 ") + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--format", choices=[f[1] for f in FORMATS])
    args = parser.parse_args()
    with gzip.open(args.data / "gemm.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    print("mean / by time, % off the median of the engines")
    every = [Table(rows, g, *form) for form in FORMATS for g in DEVICES]
    every = [t for t in every if len(t.shapes) and t.peak]
    learn_constants(every)
    for t in (t for t in every if args.format in (None, t.name)):
        near = neighbours(t, every)
        by_shape = left_out(t, t.logs, "shape", near=near)
        by_weight = left_out(t, t.logs, "weight", near=near)
        text = "%.1f / %.1f" % of_median(t.log_us, t.model(t.logs))
        print(f"{t.device.name} {t.name}: {len(t.shapes)} shapes; wave model {text}; "
              "shapes left out %.1f / %.1f;" % of_median(t.log_us, by_shape),
              "weights left out %.1f / %.1f;" % of_median(t.log_us, by_weight),
              "a row from the other engines %.1f / %.1f" % of_other_engines(t), flush=True)
        if not args.dry:
            write(t, t.name, t.logs, on_nodes(t, t.logs, near=near), *quantiles(t, by_shape))
    if not args.dry:
        write_held_out(every, args.format)
    for _, name, *_ in FORMATS:
        tables = [t for t in every if t.name == name and args.format in (None, name)]
        alone = []
        for t in tables if len(tables) > 1 else []:
            alone.append(unseen(t, tables))
            print(f"{t.device.name} {name}, never seen: %.1f / %.1f" % of_median(t.log_us, alone[-1]),
                  flush=True)
        if alone and not args.dry:
            write_unseen(tables, name, alone)


if __name__ == "__main__":
    main()
