#!/usr/bin/env python3
"""Fits the constants of the cost model to measured kernels, and compares them with the sources.

    python3 costmodel/fit/fit.py DATA            a minute; prints constants and errors
    python3 costmodel/fit/fit.py DATA --check    exit 1 when the sources predict otherwise (by 3 %)
    python3 costmodel/fit/fit.py DATA --quick    fewer rows and one start: ten seconds

DATA is a folder with gemm.csv.gz, elementwise.csv.gz, softmax.csv.gz and layernorm.csv.gz, the kernel
timings that NeuSight (ASPLOS 2025, MIT licence) published. Only rows marked `tr` of the five training
GPUs are fitted; the errors are of rows marked `te`, of every GPU that is there. Needs numpy and scipy.
The model is that of costmodel/tiles.cc and costmodel/roofline.cc, written for arrays; the rest of
the constants (0.97, 16.5 W, 0.60, the L2's 0.72, 12 and 2.5) was set by hand and is not fitted.
"""
import argparse
import csv
import gzip
import pathlib
import re
import sys

try:
    import numpy as np
    from scipy.optimize import least_squares
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
DEVICES = {"P4": "p4", "P100": "p100_pcie_16gb", "V100": "v100_pcie_32gb", "T4": "t4",
           "A100-40": "a100_pcie_40gb", "A100-80": "a100_pcie_80gb", "L4": "l4",
           "H100": "h100_sxm5_80gb"}
TRAINING = ["P4", "P100", "V100", "T4", "A100-40"]
FAMILY = {6: "pascal", 7: "volta", 8: "ampere"}  # newer: the tiles of ampere, all of them

TILES = [(128, 128), (128, 64), (64, 64), (128, 32), (32, 32)]
MENU = {"pascal": {"linear": [0, 2, 3], "bmm": [1]},
        "volta": {"linear": [0, 1, 2, 3, 4], "bmm": [1, 2, 3]},
        "ampere": {"linear": [0, 1, 2, 3, 4], "bmm": [0]},
        "new": {"linear": [0, 1, 2, 3, 4], "bmm": [0, 1, 2, 3, 4]}}
UNARY = {"addu", "mulu", "divu", "powu", "relu", "gelu", "tanh"}


def sigmoid(x):
    return 1 / (1 + np.exp(-np.clip(x, -50, 50)))


def logit(y):
    return np.log(y / (1 - y))


class Device:
    """A GPU as its file in costmodel/devices/ describes it; what was measured is left out."""

    def __init__(self, label):
        text = (HERE.parent / "devices" / f"{DEVICES[label]}.textproto").read_text()
        self.measured = dict(re.findall(r"^  (\w+): ([\d.]+)", text, re.M))
        field = dict(re.findall(r"^(\w+): ([\w.]+)", text, re.M))
        number = lambda name: float(field[name])
        self.processors, self.threads = number("multiprocessors"), number("threads_per_multiprocessor")
        self.boost, self.peak = number("boost_clock_mhz"), number("fp32_tflops")
        self.gb_per_s, self.l2 = number("memory_gb_per_s"), 1e6 * number("l2_mb")
        self.memory_class = field["memory_class"].removeprefix("MEMORY_CLASS_")
        self.family = FAMILY.get(int(field["compute_major"]), "new")
        slow = self.peak * number("base_clock_mhz") / self.boost
        self.rule = 0.97 * min(self.peak, max(slow, number("tdp_watts") / 16.5))


class Rows:
    """Columns of a table, and subsets of it."""

    def __init__(self, columns):
        self.columns = columns

    @staticmethod
    def read(path, numbers):
        with gzip.open(path, "rt", newline="") as text:
            lines = [r for r in csv.DictReader(text) if r["gpu"] in DEVICES]
        columns = {c: np.array([r[c] for r in lines]) for c in ("sp", "op", "gpu")}
        columns |= {c: np.array([float(r[c]) for r in lines]) for c in numbers}
        columns["ms"] = columns.pop("us") / 1e3
        return Rows(columns)

    def __getattr__(self, name):
        return self.columns[name]

    def __len__(self):
        return len(self.ms)

    def where(self, mask):
        return Rows({c: v[mask] for c, v in self.columns.items()})

    def groups(self):
        """(operation, GPU) and the places of its rows."""
        for op, gpu in sorted(set(zip(self.op, self.gpu))):
            yield op, gpu, np.flatnonzero((self.op == op) & (self.gpu == gpu))

    def thinned(self, keep):
        """At most keep(op, gpu) rows of each group, evenly spread."""
        chosen = []
        for op, gpu, at in self.groups():
            n = min(len(at), keep(op, gpu))
            chosen.append(at[np.linspace(0, len(at) - 1, n).astype(int)])
        return self.where(np.concatenate(chosen))


class Floors:
    """The shortest time of each operation on each GPU: the host's launch, which the times hold. GPUs
    without training rows have the median of the others."""

    def __init__(self, rows, share):
        self.of = {(op, gpu): np.quantile(rows.ms[at], share) for op, gpu, at in rows.groups()}

    def __call__(self, rows):
        out = np.empty(len(rows))
        for op, gpu, at in rows.groups():
            others = [v for (o, g), v in self.of.items() if o == op and g in TRAINING]
            out[at] = self.of.get((op, gpu), np.median(others))
        return out


def with_launch(kernel, floor, share):
    return np.maximum(floor, share * floor + kernel)


def memory_ms(size, bandwidth, l2):
    hit = sigmoid(12 * np.log(0.72 * l2 / np.maximum(size, 1)))
    return size / (bandwidth * 1e6) * (1 - hit + hit / 2.5)


# --- softmax and layer norm

ROW_START = dict(kNormSlope=5, kNormFit=0.5, kNormRow=3000, kNormElement=2, kSoftmaxSlope=5,
                 kSoftmaxFit=0.5, kWarpRow=300, kWarpElement=1, kBlockRow=3000, kBlockElement=50,
                 kBlend=2)


def row_ms(op, rows, columns, gpu, bandwidth, p):
    threads = gpu.processors * gpu.threads

    def rereads(in_flight, slope, fit):
        return sigmoid(slope * np.log(np.minimum(rows, in_flight) * 4 * columns / (fit * gpu.l2)))

    if op == "ln":
        miss = 0.5 * rereads(threads / 128, p["kNormSlope"], p["kNormFit"])
        cycles = rows / (threads / 128) * (p["kNormRow"] + p["kNormElement"] * columns)
    else:
        warp = columns <= 1024
        block = np.maximum(32, 2 ** np.ceil(np.log2(np.minimum(columns / 4, 1024) / 2)))
        miss = np.where(warp, 0, rereads(threads / block, p["kSoftmaxSlope"], p["kSoftmaxFit"]))
        by_warp = rows / (threads / 32) * (p["kWarpRow"] + p["kWarpElement"] * columns)
        by_block = rows / (threads / block) * (
            p["kBlockRow"] + p["kBlockElement"] * np.ceil(columns / (4 * block)))
        cycles = np.where(warp, by_warp, by_block)
    memory = memory_ms(8 * rows * columns, bandwidth, gpu.l2) * (1 + miss)
    waiting = cycles / gpu.boost * 1e-3
    return (memory ** p["kBlend"] + waiting ** p["kBlend"]) ** (1 / p["kBlend"])


# --- products

class Products:
    """The constants of costmodel/tiles.cc with the rates of each GPU, as one vector for the search."""

    SCALARS = ["kWaveQuantisation", "kTileCycles", "kOccupancyDepth", "kOccupancyScale", "kL2Fit",
               "kSplitNs"]
    # 128x128 is the reference of each family. Pascal's 32x32 is not on its menu.
    FREE_TILES = {"ampere": 4, "volta": 4, "pascal": 3}

    @staticmethod
    def start():
        scalars = [0.0, np.log(1500), 0.0, np.log(0.5), np.log(0.5), np.log(5000)]
        tiles = [2.5, 1.5, 2, 0, 2.5, 1.5, 1, 0, 2, 1.5, 1]
        rates = [np.log(Device(g).rule) for g in TRAINING]
        return np.array(scalars + tiles + rates + rates)

    def __init__(self, vector):
        v = list(vector)
        take = lambda n: [v.pop(0) for _ in range(n)]
        q, c, depth, scale, fit, split = take(6)
        self.scalar = dict(zip(self.SCALARS, [sigmoid(q), np.exp(c), sigmoid(depth), np.exp(scale),
                                              np.exp(fit), np.exp(split)]))
        self.tile = {f: [1.0] + [sigmoid(x) for x in take(n)] for f, n in self.FREE_TILES.items()}
        self.tile["pascal"] += [1.0]
        self.tile["new"] = self.tile["ampere"]
        self.rate = {("bmm", g): np.exp(x) for g, x in zip(TRAINING, take(5))}
        self.rate |= {("linear", g): np.exp(x) for g, x in zip(TRAINING, take(5))}
        # Products of P4's training half are two to three times slower than its others.
        self.rate["linear", "P4"] = self.rate["bmm", "P4"]

    def ms(self, op, gpu, rate, bandwidth, b, m, k, n):
        s, best = self.scalar, np.full(len(m), np.inf)
        clock = gpu.boost * min(1, rate / gpu.peak)
        per_ms = bandwidth * 1e6
        once, out = 4 * b * (m * k + k * n), 4 * b * m * n
        miss = 1 / (1 + (s["kL2Fit"] * gpu.l2 / (4 * (m * k + k * n))) ** 2)
        for index in MENU[gpu.family][op]:
            for rows, columns in {TILES[index], TILES[index][::-1]}:
                down_all, across_all = np.ceil(m / rows), np.ceil(n / columns)
                tiles = b * down_all * across_all
                flight = np.minimum(2 * gpu.processors, down_all * across_all)
                across = np.clip(np.sqrt(flight * rows / columns), 1, across_all)
                down = np.clip(flight / across, 1, down_all)
                across = np.clip(flight / down, 1, across_all)
                strips = tiles / (down * across) * 4 * k * (down * rows + across * columns)
                read = once + np.maximum(strips - once, 0) * miss
                for split in (1, 2, 4, 8, 16) if op == "linear" else (1,):
                    part = np.ceil(k / split)
                    waves = tiles * split / gpu.processors
                    quantised = s["kWaveQuantisation"] * np.ceil(waves) + (
                        1 - s["kWaveQuantisation"]) * np.maximum(waves, 1)
                    one = 2e-9 * rows * columns * part * gpu.processors / (
                        rate * self.tile[gpu.family][index]) + s["kTileCycles"] / clock * 1e-3
                    resident = np.minimum(np.ceil(waves), 4) * rows * columns / 128 ** 2
                    busy = 1 - s["kOccupancyDepth"] * np.exp(-resident / s["kOccupancyScale"])
                    moved = (read + out * (1 if split == 1 else 1 + split)) / per_ms
                    ms = np.hypot(quantised * one / busy, moved)
                    if split > 1:
                        allowed = (part >= 64) & (tiles < 2 * gpu.processors)
                        ms = np.where(allowed, ms + s["kSplitNs"] * 1e-6, np.inf)
                    best = np.minimum(best, ms)
        return best

    def predict(self, rows, bandwidth):
        out = np.empty(len(rows))
        for op, label, at in rows.groups():
            gpu = Device(label)
            b, m, k, n = (rows.columns[c][at] for c in "bmkn")
            if op == "linear":
                m, b = m * b, np.ones_like(b)
            rate = self.rate.get((op, label), gpu.rule)
            out[at] = self.ms(op, gpu, rate, gpu.gb_per_s * bandwidth[label], b, m, k, n)
        return out


# --- the fits

def fit_bandwidth(vector_rows, floors):
    """Share of the data sheet, by GPU: large elementwise operations; others have that of their class."""
    size = np.where(np.isin(vector_rows.op, list(UNARY)), 8, 12) * vector_rows.b * vector_rows.h
    large = vector_rows.where((vector_rows.sp == "tr") & (size > 8e7) &
                              ~np.isin(vector_rows.op, ["pow", "powu"]) &
                              np.isin(vector_rows.gpu, TRAINING))
    size = np.where(np.isin(large.op, list(UNARY)), 8, 12) * large.b * large.h
    rate = size / (large.ms - 0.6 * floors(large)) / 1e6
    share = {g: np.median(rate[large.gpu == g]) / Device(g).gb_per_s for g in TRAINING}
    by_class = {"HBM": share["A100-40"], "GDDR_ECC": (share["P4"] + share["T4"]) / 2, "GDDR": 0.87}
    for gpu in DEVICES:
        share.setdefault(gpu, by_class[Device(gpu).memory_class])
    return share, by_class


def predict_rows(rows, bandwidth, p):
    out = np.empty(len(rows))
    for op, label, at in rows.groups():
        gpu = Device(label)
        out[at] = row_ms(op, rows.b[at], rows.h[at], gpu, gpu.gb_per_s * bandwidth[label], p)
    return out


def fit_rows(rows, floors, bandwidth, quick):
    rows = rows.where((rows.sp == "tr") & np.isin(rows.gpu, TRAINING) &
                      ((rows.op != "ln") | (rows.h % 4 == 0)))
    rows = rows.where(rows.ms > 1.6 * floors(rows))
    rows = rows.thinned(lambda op, gpu: (120 if quick else 350) if op == "ln" else
                        (200 if quick else 600))
    floor, target = floors(rows), np.log(rows.ms)
    names = list(ROW_START)
    start = np.log(list(ROW_START.values()))
    # The blend of waiting and moving is between their sum (1) and the larger (infinity).
    start[-1] = np.log(ROW_START["kBlend"])
    params = lambda v: {**dict(zip(names, np.exp(v))), "kBlend": 1 + np.exp(v[-1])}

    def errors(v):
        predicted = with_launch(predict_rows(rows, bandwidth, params(v)), floor, 1)
        return np.r_[np.log(predicted) - target, 0.03 * (v - start)]

    found = least_squares(errors, start, loss="soft_l1", f_scale=0.1, max_nfev=80, diff_step=1e-3)
    return params(found.x)


def fit_products(rows, floors, bandwidth, quick):
    rows = rows.where((rows.sp == "tr") & np.isin(rows.gpu, TRAINING) &
                      ~((rows.op == "linear") & (rows.gpu == "P4")))
    rows = rows.where(rows.ms > 1.5 * floors(rows))
    wanted = {"A100-40": 1500, "V100": 800, "T4": 500, "P100": 500, "P4": 400}
    rows = rows.thinned(lambda op, gpu: wanted[gpu] // (3 if quick else 1))
    floor, target = floors(rows), np.log(rows.ms)
    weight = np.empty(len(rows))
    groups = list(rows.groups())
    for _, _, at in groups:  # each operation and GPU counts the same
        weight[at] = np.sqrt(len(rows) / len(groups) / len(at))

    def errors(v, start):
        predicted = with_launch(Products(v).predict(rows, bandwidth), floor, 0.6)
        return np.r_[weight * (np.log(predicted) - target), 0.1 * (v - start)]

    best, start = None, Products.start()
    for seed in range(1 if quick else 3):  # tiles trade off against each other: three starts
        noise = np.random.RandomState(seed).randn(len(start)) * 0.3 if seed else 0
        found = least_squares(errors, start + noise, args=(start,), loss="soft_l1", f_scale=0.08,
                              max_nfev=12 if quick else 30, diff_step=1e-3)
        best = found if best is None or found.cost < best.cost else best
    return Products(best.x)


# --- what is in the sources

def constants_of_sources():
    text = "".join((HERE.parent / f).read_text() for f in ("tiles.cc", "roofline.cc", "device.cc"))
    return {n: float(v) for n, v in re.findall(r"(k\w+) = (-?[\d.]+(?:e-?\d+)?)[,;]", text)}


def tiles_of_sources():
    text = (HERE.parent / "tiles.cc").read_text()
    tiles = {}
    for family in ("pascal", "volta", "ampere"):
        for body in re.findall(rf"k{family.capitalize()}(?:Batched)?\[\] = \{{(.*?)\}};", text, re.S):
            for rows, columns, share in re.findall(r"\{(\d+), (\d+), ([\d.]+)\}", body):
                tiles[family, (int(rows), int(columns))] = float(share)
    return tiles


def print_errors(what, rows, predicted):
    rows_error = 100 * np.abs(predicted / rows.ms - 1)
    for op, gpu, at in rows.groups():
        kind = "" if gpu in TRAINING else "  (not fitted)"
        print(f"  {what or op:12} {gpu:8} {len(at):6} rows {rows_error[at].mean():6.1f} %{kind}")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("data", type=pathlib.Path)
    args.add_argument("--quick", action="store_true")
    args.add_argument("--check", action="store_true")
    args = args.parse_args()
    if not (args.data / "gemm.csv.gz").exists():
        print(f"skipped: no measurements at {args.data}")
        return 77

    elementwise = Rows.read(args.data / "elementwise.csv.gz", ["b", "h", "us"])
    softmax = Rows.read(args.data / "softmax.csv.gz", ["b", "h", "us"])
    norm = Rows.read(args.data / "layernorm.csv.gz", ["b", "h", "us"])
    products = Rows.read(args.data / "gemm.csv.gz", ["b", "m", "k", "n", "us"])
    rowwise = Rows({c: np.concatenate([softmax.columns[c], norm.columns[c]])
                    for c in softmax.columns})

    def small(rows, per_element):
        return rows.where((rows.sp == "tr") & (per_element * rows.b * rows.h < 3e5))

    unary = np.isin(elementwise.op, list(UNARY))
    element_floors = Floors(small(elementwise, np.where(unary, 8, 12)), 0.3)
    row_floors = Floors(small(rowwise, 8), 0.3)
    product_floors = Floors(products.where(products.sp == "tr"), 0.004)

    bandwidth, by_class = fit_bandwidth(elementwise, element_floors)
    row_constants = fit_rows(rowwise, row_floors, bandwidth, args.quick)
    fitted = fit_products(products, product_floors, bandwidth, args.quick)

    found = {"kHbmShare": by_class["HBM"], "kGddrEccShare": by_class["GDDR_ECC"]}
    found |= row_constants | fitted.scalar
    source = constants_of_sources()
    rows = [(name, value, source[name]) for name, value in found.items()]
    for (family, tile), share in tiles_of_sources().items():
        rows.append((f"{family} {tile[0]}x{tile[1]}", fitted.tile[family][TILES.index(tile)], share))
    for gpu in TRAINING:
        measured = Device(gpu).measured
        rows.append((f"{gpu} bandwidth", bandwidth[gpu], float(measured["bandwidth_share"])))
        rows.append((f"{gpu} bmm", fitted.rate["bmm", gpu],
                     float(measured["fp32_batched_gemm_tflops"])))
        rows.append((f"{gpu} linear", fitted.rate["linear", gpu],
                     float(measured["fp32_gemm_tflops"])))
    print(f"{'constant':22}{'fitted':>12}{'in the source':>15}")
    for name, value, old in rows:
        print(f"{name:22}{value:12.6g}{old:15.6g}{100 * (value / old - 1):+9.1f} %")

    print("mean errors of rows that were not fitted")
    test = lambda table: table.where(table.sp == "te")
    t = test(products)
    now = with_launch(fitted.predict(t, bandwidth), product_floors(t), 0.6)
    print_errors("", t, now)
    t = test(rowwise)
    row_now = with_launch(predict_rows(t, bandwidth, row_constants), row_floors(t), 1)
    print_errors("", t, row_now)
    e = test(elementwise)
    size = np.where(np.isin(e.op, list(UNARY)), 8, 12) * e.b * e.h
    kernel = np.array([memory_ms(s, Device(g).gb_per_s * bandwidth[g], Device(g).l2)
                       for g in sorted(set(e.gpu)) for s in size[e.gpu == g]])
    order = np.concatenate([np.flatnonzero(e.gpu == g) for g in sorted(set(e.gpu))])
    predicted = np.empty(len(e))
    predicted[order] = kernel
    merged = Rows({**e.columns, "op": np.full(len(e), "elementwise")})
    print_errors("", merged, with_launch(predicted, element_floors(e), 0.6))

    # Constants trade off against each other; what they predict together may not move.
    committed = Products(Products.start())
    committed.scalar = {n: source[n] for n in Products.SCALARS}
    for (family, tile), share in tiles_of_sources().items():
        committed.tile[family][TILES.index(tile)] = share
    for gpu in TRAINING:
        committed.rate["bmm", gpu] = float(Device(gpu).measured["fp32_batched_gemm_tflops"])
        committed.rate["linear", gpu] = float(Device(gpu).measured["fp32_gemm_tflops"])
    p = test(products)
    moved = np.abs(np.log(fitted.predict(p, bandwidth) / committed.predict(p, bandwidth)))
    old_rows = predict_rows(t, bandwidth, {n: source[n] for n in row_constants})
    row_moved = np.abs(np.log(predict_rows(t, bandwidth, row_constants) / old_rows))
    shares = [abs(np.log(v / o)) for n, v, o in rows if "andwidth" in n or n.endswith("Share")]
    print(f"predictions differ from those of the source by {100 * moved.mean():.2f} % (products), "
          f"{100 * row_moved.mean():.2f} % (rows); bandwidths by at most {100 * max(shares):.3f} %")
    if args.check and (moved.mean() > 0.03 or row_moved.mean() > 0.03 or max(shares) > 0.001):
        print("the sources have other constants than the data")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
