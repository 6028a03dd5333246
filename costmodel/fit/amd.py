#!/usr/bin/env python3
"""Fits what AMD's GPUs sustain to measured kernels, and compares it with the sources.

    python3 costmodel/fit/amd.py DATA            a minute; prints constants and errors
    python3 costmodel/fit/amd.py DATA --check    exit 1 when the sources differ by more than 2 %

DATA is as for fit.py, whose model this uses: tiles and all constants but these are those of NVIDIA's
GPUs. Fitted are MI100 and MI210; MI250 has no rows. A third of the shapes is left out, by their sizes, and
judged. Needs numpy and scipy.
"""
import argparse
import pathlib
import re
import sys

import fit
from fit import Device, Products, Rows, memory_ms, np, row_ms, with_launch

AMD = {"MI100": "mi100", "MI210": "mi210"}
HERE = pathlib.Path(__file__).resolve().parent


def left_out(rows):
    """A third of the shapes, as tests/costmodel/costmodel_accuracy_test.cc has it."""
    sizes = [rows.columns.get(c, 0) for c in ("b", "m", "k", "n", "h")]
    return sum(w * s for w, s in zip((31, 7, 5, 3, 7), sizes)) % 3 == 0


def peak_of_matrix_cores(gpu):
    text = (HERE.parent / "devices" / f"{AMD[gpu]}.textproto").read_text()
    return float(re.search(r"^fp32_matrix_tflops: ([\d.]+)", text, re.M).group(1))


def products_model():
    """The constants of costmodel/tiles.cc, as they stand."""
    source = fit.constants_of_sources()
    model = Products(Products.start())
    model.scalar = {n: source[n] for n in Products.SCALARS}
    for (family, tile), share in fit.tiles_of_sources().items():
        model.tile[family][fit.TILES.index(tile)] = share
    model.tile["new"] = model.tile["ampere"]
    return model


def shortest(rows):
    """By GPU: the host's launch, which is in the times. Products and batched ones share it."""
    return {g: np.quantile(rows.ms[rows.gpu == g], 0.004) for g in AMD}


def smooth_cost(log_ratio):
    return np.sum(2 * (np.sqrt(1 + (log_ratio / 0.08) ** 2) - 1))


def best_of(values, cost):
    return min(values, key=cost)


def fit_rates(model, products, bandwidth):
    """TFLOPS of (operation, GPU), and the errors on the shapes left out."""
    floors, rates = shortest(products), {}
    ms = lambda rows, op, gpu, rate: with_launch(
        model.ms(op, Device(gpu), rate, Device(gpu).gb_per_s * bandwidth[gpu],
                 *((np.ones_like(rows.b), rows.m * rows.b) if op == "linear" else (rows.b, rows.m)),
                 rows.k, rows.n), floors[gpu], 0.6)
    for op, gpu, at in products.groups():
        own = products.where((products.op == op) & (products.gpu == gpu))
        seen = own.where(~left_out(own) & (own.ms > 1.5 * floors[gpu]))
        cost = lambda rate: smooth_cost(np.log(ms(seen, op, gpu, rate) / seen.ms))
        rates[op, gpu] = best_of(np.arange(15, 40, 0.25), cost)
        rest = own.where(left_out(own))
        fit.print_errors("", rest, ms(rest, op, gpu, rates[op, gpu]))
    return rates


def fit_shares(elementwise):
    """Of the data sheet's bandwidth, by GPU: as fit.py does."""
    size = np.where(np.isin(elementwise.op, list(fit.UNARY)), 8, 12) * elementwise.b * elementwise.h
    floors = fit.Floors(elementwise.where(size < 3e5), 0.3)
    large = elementwise.where((size > 8e7) & ~left_out(elementwise) & ~np.isin(elementwise.op, ["pow", "powu"]))
    size = np.where(np.isin(large.op, list(fit.UNARY)), 8, 12) * large.b * large.h
    rate = size / (large.ms - 0.6 * floors(large)) / 1e6
    return {g: np.median(rate[large.gpu == g]) / Device(g).gb_per_s for g in AMD}


def fit_block_row(softmax, bandwidth):
    """Cycles of a block's row (kAmdBlockRow of costmodel/roofline.cc)."""
    source = {n: fit.constants_of_sources()[n] for n in fit.ROW_START}
    floors = fit.Floors(softmax.where(8 * softmax.b * softmax.h < 3e5), 0.3)

    def ms(rows, cycles):
        out = np.empty(len(rows))
        for _, gpu, at in rows.groups():
            out[at] = row_ms("softmax", rows.b[at], rows.h[at], Device(gpu),
                             Device(gpu).gb_per_s * bandwidth[gpu], {**source, "kBlockRow": cycles})
        return with_launch(out, floors(rows), 1)

    seen = softmax.where(~left_out(softmax) & (softmax.ms > 1.6 * floors(softmax)))
    cycles = best_of(np.geomspace(5e3, 1e5, 300),
                     lambda c: smooth_cost(np.log(ms(seen, c) / seen.ms)))
    rest = softmax.where(left_out(softmax))
    fit.print_errors("as NVIDIA", rest, ms(rest, source["kBlockRow"]))
    fit.print_errors("", rest, ms(rest, cycles))
    return cycles


def print_others(elementwise, norm, bandwidth):
    """What nothing was fitted to."""
    size = np.where(np.isin(elementwise.op, list(fit.UNARY)), 8, 12) * elementwise.b * elementwise.h
    floors = fit.Floors(elementwise.where(size < 3e5), 0.3)
    kernel = np.empty(len(elementwise))
    for _, gpu, at in elementwise.groups():
        kernel[at] = memory_ms(size[at], Device(gpu).gb_per_s * bandwidth[gpu], Device(gpu).l2)
    fit.print_errors("", elementwise, with_launch(kernel, floors(elementwise), 0.6))
    source = {n: fit.constants_of_sources()[n] for n in fit.ROW_START}
    floors = fit.Floors(norm.where(8 * norm.b * norm.h < 3e5), 0.3)
    fit.print_errors("layer norm", norm,
                     with_launch(fit.predict_rows(norm, bandwidth, source), floors(norm), 1))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("data", type=pathlib.Path)
    args.add_argument("--check", action="store_true")
    args = args.parse_args()
    if not (args.data / "gemm.csv.gz").exists():
        print(f"skipped: no measurements at {args.data}")
        return 77
    model = products_model()
    fit.DEVICES = AMD
    fit.TRAINING = list(AMD)
    fit.FAMILY = {9: "ampere"}
    fit.MENU["ampere"] = fit.MENU["new"]
    read = lambda name, columns: Rows.read(args.data / f"{name}.csv.gz", columns + ["us"])
    print("mean errors; of products and softmax: of shapes that were left out")
    elementwise = read("elementwise", ["b", "h"])
    share = fit_shares(elementwise)
    rates = fit_rates(model, read("gemm", ["b", "m", "k", "n"]), share)
    block_row = fit_block_row(read("softmax", ["b", "h"]), share)
    print_others(elementwise, read("layernorm", ["b", "h"]), share)

    def of_peak(op):
        return np.mean([rates[op, g] / peak_of_matrix_cores(g) for g in AMD])

    source = fit.constants_of_sources()
    rows = [("kFp32MatrixShare", of_peak("linear"), source["kFp32MatrixShare"]),
            ("kFp32MatrixBatched", of_peak("bmm") / of_peak("linear"), source["kFp32MatrixBatched"]),
            ("kAmdHbmShare", np.mean(list(share.values())), source["kAmdHbmShare"]),
            ("kAmdBlockRow", block_row, source["kAmdBlockRow"])]
    for gpu in AMD:
        measured = Device(gpu).measured
        rows += [(f"{gpu} linear", rates["linear", gpu], float(measured["fp32_gemm_tflops"])),
                 (f"{gpu} bmm", rates["bmm", gpu], float(measured["fp32_batched_gemm_tflops"])),
                 (f"{gpu} bandwidth", share[gpu], float(measured["bandwidth_share"]))]
    print(f"{'constant':22}{'fitted':>12}{'in the source':>15}")
    for name, value, old in rows:
        print(f"{name:22}{value:12.6g}{old:15.6g}{100 * (value / old - 1):+9.1f} %")
    if args.check and max(abs(value / old - 1) for _, value, old in rows) > 0.02:
        print("the sources have other constants than the data")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
