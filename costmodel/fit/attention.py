#!/usr/bin/env python3
"""Fits the measured surfaces of fused attention, and says how good they are on shapes left out.

    python3 costmodel/fit/attention.py DATA         writes costmodel/surfaces/*.attention*.txt
    python3 costmodel/fit/attention.py DATA --dry   prints the errors only

DATA is a folder with context_attention.csv.gz (causal) and encoder_attention.csv.gz, attention in bf16
timed by NVIDIA's AIConfigurator (Apache-2.0). Rows of the FlashAttention kernels that vllm and sglang
call are fitted, by their median; those of TensorRT-LLM and Triton are other kernels. The terms are those
of costmodel/attention_surface.cc. Needs numpy and scipy.
"""
import argparse
import collections
import csv
import gzip
import pathlib
import zlib

import surfaces
from surfaces import DEVICES, EDGES_US, INSIDE, OUT, Device, np, of_median
from scipy.optimize import least_squares

FILES = [("context_attention", "attention_causal"), ("encoder_attention", "attention")]
CONSTANTS = [("launch_us", 8, 0.5), ("rate_share", 0.6, 0.3), ("bandwidth_share", 0.5, 0.6),
             ("wave_odds", 1, 0.7), ("narrow_head", 0.75, 0.3), ("ramp_us", 2, 0.7),
             ("blend", 2, 0.5), ("tile_kilocycles", 0.1, 1), ("packed_odds", 1, 1.5)]
START = np.log([c[1] for c in CONSTANTS])
WIDTH = np.array([c[2] for c in CONSTANTS])
# log2 of: queries, heads of all examples, padded width of a head (twice), heads that share keys.
NODES = [np.arange(0, 16), np.arange(0, 16), np.arange(12, 20, 2), np.arange(0, 7)]
SIZE, LENGTH, NOISE = 0.25, 2.5, 0.08
BLOCK, KEY_BLOCK = 128, 64
PADDED = 32  # widths of a head are padded to a multiple: kernels exist for 64, 96, 128, ...


def wave_model(logs, shapes, device, causal):
    c = dict(zip([x[0] for x in CONSTANTS], np.exp(logs)))
    batch, length, heads, kv, width = shapes.T
    padded = np.ceil(width / PADDED) * PADDED
    keys = np.ceil(length / KEY_BLOCK) * KEY_BLOCK
    if causal:
        keys = np.where(length > BLOCK, (keys + BLOCK) / 2, keys)
    rate = device.peak("bf16_tflops") * np.sqrt(device.base / device.boost) * c["rate_share"]
    rate = rate * np.where(width < 100, c["narrow_head"], 1) / device.processors
    tile = 4 * BLOCK * keys * padded / rate + 1000 * c["tile_kilocycles"] / device.boost
    share = c["wave_odds"] / (1 + c["wave_odds"])

    def in_waves(blocks):
        waves = blocks / device.processors
        return (share * np.ceil(waves) + (1 - share) * np.maximum(waves, 1)) * tile

    apart = in_waves(batch * heads * np.ceil(length / BLOCK))
    # Queries of heads that share their keys are rows of one block: always of single queries, of
    # more by some kernels.
    packed = in_waves(batch * kv * np.ceil(length * heads / kv / BLOCK))
    odds = c["packed_odds"] / (1 + c["packed_odds"])
    compute = np.where(length == 1, packed, packed ** odds * apart ** (1 - odds))
    moved = 2 * width * batch * length * (2 * heads + 2 * kv)
    memory = (moved / (device.bandwidth * c["bandwidth_share"])
              + c["ramp_us"] * np.minimum(1, moved / 4e6))
    power = 1 + c["blend"]
    return c["launch_us"] + (compute ** power + memory ** power) ** (1 / power)


def points(shapes):
    batch, length, heads, kv, width = shapes.T
    padded = np.ceil(width / PADDED) * PADDED
    return np.stack([np.log2(length), np.log2(batch * heads), 2 * np.log2(padded),
                     np.log2(heads / kv)], 1)


def smooth(at, values, where):
    def kernel(a, b):
        r = np.sqrt(3 * (((a[:, None] - b[None]) / LENGTH) ** 2).sum(-1) + 1e-12)
        return SIZE ** 2 * (1 + r) * np.exp(-r)
    return kernel(where, at) @ np.linalg.solve(kernel(at, at) + NOISE ** 2 * np.eye(len(at)), values)


def on_nodes(shapes, residual):
    grid = np.array(np.meshgrid(*NODES, indexing="ij")).reshape(4, -1).T.astype(float)
    return np.rint(100 * smooth(points(shapes), residual, grid)).reshape([len(n) for n in NODES])


def between_nodes(nodes, shapes):
    low, part = [], []
    for i, x in enumerate(points(shapes).T):
        at = np.clip((x - NODES[i][0]) / (NODES[i][1] - NODES[i][0]), 0, len(NODES[i]) - 1.001)
        low.append(np.floor(at).astype(int))
        part.append(at - low[-1])
    value = 0
    for corner in range(16):
        bit = [corner >> i & 1 for i in range(4)]
        weight = np.prod([p if b else 1 - p for p, b in zip(part, bit)], 0)
        value = value + weight * nodes[tuple(l + b for l, b in zip(low, bit))]
    return value / 100


def table(data, file, gpu):
    by_shape = collections.defaultdict(list)
    with gzip.open(data / f"{file}.csv.gz", "rt") as rows:
        for r in csv.DictReader(rows):
            plain = r["attn_dtype"] == "bfloat16" and r.get("kv_cache_dtype", "bfloat16") == "bfloat16"
            other = r["engine"] == "trtllm" or "triton" in r["source"]
            if r["gpu"] != gpu or not plain or other:
                continue
            heads = int(r["num_heads"])
            by_shape[(int(r["batch_size"]), int(r["isl"]), heads,
                      int(r.get("num_key_value_heads", heads)), int(r["head_dim"]))].append(float(r["us"]))
    shapes = sorted(by_shape)
    return np.array(shapes, float), [np.log(by_shape[s]) for s in shapes]


def write(path, device, shapes, rows, logs, nodes, ends):
    lines = ["# Made by costmodel/fit/attention.py from attention that NVIDIA's AIConfigurator timed",
             "# (github.com/ai-dynamo/aiconfigurator, Apache-2.0): costmodel/attention_surface.h.",
             f"device {device.name}", f"shapes {len(shapes)}", f"rows {sum(map(len, rows))}"]
    lines += [f"{c[0]} {v:.5g}" for c, v in zip(CONSTANTS, np.exp(logs))]
    lines += ["low " + " ".join(f"{e[0]:.3f}" for e in ends),
              "high " + " ".join(f"{e[1]:.3f}" for e in ends), "correction"]
    lines += [" ".join(f"{v:.0f}" for v in row)
              for row in nodes.reshape(-1, len(NODES[2]) * len(NODES[3])) + 0.0]
    path.write_text("\n".join(lines).replace("-0 ", "0 ") + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--dry", action="store_true")
    args = parser.parse_args()
    print("mean / by time, % off the median of the engines")
    for file, name in FILES:
        causal = file == "context_attention"
        for gpu in DEVICES:
            shapes, rows = table(args.data, file, gpu)
            if not len(shapes):
                continue
            device = Device(gpu)
            log_us = np.array([np.median(r) for r in rows])

            def constants(some):
                def off(logs):
                    model = np.log(wave_model(logs, shapes[some], device, causal))
                    return np.concatenate([(model - log_us[some]) / 0.1, 3 * (logs - START) / WIDTH])
                return least_squares(off, START, loss="soft_l1", diff_step=1e-3, max_nfev=30).x
            logs = constants(slice(None))
            model = np.log(wave_model(logs, shapes, device, causal))
            fold = np.array([zlib.crc32(("%d,%d,%d,%d,%d" % tuple(s)).encode()) % 3 for s in shapes])
            held = np.zeros(len(shapes))
            for i in range(3):
                rest, out = fold != i, fold == i
                seen = np.log(wave_model(constants(rest), shapes, device, causal))
                nodes = on_nodes(shapes[rest], (log_us - seen)[rest])
                held[out] = seen[out] + between_nodes(nodes, shapes[out])
            text = "%.1f / %.1f" % of_median(log_us, model)
            print(f"{device.name} {name}: {len(shapes)} shapes; wave model {text}; "
                  "shapes left out %.1f / %.1f" % of_median(log_us, held), flush=True)
            ratio = np.concatenate([r - p for r, p in zip(rows, held)])
            kind = np.concatenate([[np.searchsorted(EDGES_US, np.exp(p))] * len(r)
                                   for r, p in zip(rows, held)])
            ends = []
            for i in range(len(EDGES_US) + 1):
                some = ratio[kind == i] if (kind == i).sum() >= 30 else ratio
                ends.append(np.quantile(some, [(1 - INSIDE) / 2, (1 + INSIDE) / 2]))
            if not args.dry:
                write(OUT / f"{DEVICES[gpu]}.{name}.txt", device, shapes, rows, logs,
                      on_nodes(shapes, log_us - model), ends)


if __name__ == "__main__":
    main()
