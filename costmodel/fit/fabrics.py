#!/usr/bin/env python3
"""fabrics.py SWEEPS.csv: writes costmodel/network/fabrics/*.textproto from published sweeps of nccl-tests.

SWEEPS.csv has a line for each size: table,collective,gpu,ranks,nodes,fabric,bytes,time_us,...,source,licence.
Each curve is a_us + g_us sqrt(bytes) + bytes x factor / bus_GBps with the least squares of the relative error,
nothing below 0, over sizes from 1 KiB on. Only these parameters are kept, not the rows.
"""
import csv, math, os, re, sys

OUT = os.path.join(os.path.dirname(__file__), "..", "network", "fabrics")
BASIS = [lambda s: 1.0, math.sqrt, lambda s: s]


def read(path):
    sweeps = {}
    for r in csv.DictReader(open(path)):
        sweep = sweeps.setdefault(r["table"], {"rows": [], "first": r})
        sweep.setdefault("sizes", []).append(int(r["bytes"]))
        if float(r["bytes"]) >= 1024:
            sweep["rows"].append((float(r["bytes"]), float(r["time_us"])))
    return sweeps


def fit(points, fixed_a=None):
    """(a, g, b) of the least squares; a may be given where a sweep has no small sizes."""
    best = None
    for mask in range(1, 8):
        used = [i for i in range(3) if mask >> i & 1 and not (i == 0 and fixed_a is not None)]
        if not used:
            continue
        n = len(used)
        m = [[0.0] * (n + 1) for _ in range(n)]
        for s, t in points:
            v = [BASIS[i](s) / t for i in used]
            rest = 1 - (fixed_a or 0) / t
            for i in range(n):
                m[i][n] += v[i] * rest
                for j in range(n):
                    m[i][j] += v[i] * v[j]
        for i in range(n):
            p = max(range(i, n), key=lambda r: abs(m[r][i]))
            m[i], m[p] = m[p], m[i]
            if abs(m[i][i]) < 1e-300:
                break
            for r in range(n):
                if r != i:
                    f = m[r][i] / m[i][i]
                    m[r] = [x - f * y for x, y in zip(m[r], m[i])]
        else:
            x = [0.0 if fixed_a is None else fixed_a, 0.0, 0.0]
            for row, i in enumerate(used):
                x[i] = m[row][n] / m[row][row]
            if min(x) < 0:
                continue
            square = sum((time(x, s) / t - 1) ** 2 for s, t in points)
            if best is None or square < best[0]:
                best = (square, x)
    return best[1]


def time(x, s):
    return sum(c * f(s) for c, f in zip(x, BASIS))


def curve(name, sweep, fixed_a=None):
    r = sweep["first"]
    n = int(r["ranks"])
    factor = (n - 1) / n * (2 if r["collective"] == "all_reduce" else 1)
    x = fit(sweep["rows"], fixed_a)
    off = sorted(abs(time(x, s) / t - 1) for s, t in sweep["rows"])
    mean, p95 = sum(off) / len(off), off[int(0.95 * (len(off) - 1))]
    where = re.sub(r" \(index id \d+\)|, repository not named by the index", "", r["source"])
    where = "Azure NCv4 NCCL notes" if where == "same" else where
    source = f'{r["gpu"]}, {r["fabric"]}: {where}'.replace('"', "")
    return (f'    {name} {{\n      ranks: {n} nodes: {r["nodes"]} a_us: {x[0]:.5g} g_us: {x[1]:.5g} '
            f'bus_GBps: {factor / x[2] / 1e3:.6g}\n'
            f'      error_pct: {100 * mean:.2g} error_p95_pct: {100 * p95:.2g}\n'
            f'      from_bytes: {min(sweep["sizes"])} to_bytes: {max(sweep["sizes"])}\n'
            f'      source: "{source}"\n    }}\n')


def write(name, body, aliases=()):
    with open(os.path.join(OUT, name + ".textproto"), "w") as f:
        f.write("# Written by costmodel/fit/fabrics.py; units in proto/fabric.proto.\nfabric {\n"
                f'  name: "{name}"\n')
        f.writelines(f'  alias: "{a}"\n' for a in aliases)
        f.write(body + "}\n")


def level(head, curves=""):
    return f"  level {{\n    {head}\n{curves}  }}\n"


def main():
    s = read(sys.argv[1])
    os.makedirs(OUT, exist_ok=True)
    tail = lambda sms, source: f'  sms_per_collective: {sms}\n  source: "{source}"\n'
    published = "size sweeps of nccl-tests and rccl-tests that others published; each curve names its own"
    # GPUs of one node.
    write("nvlink2", level('name: "nvlink2" size: 8 kind: SWITCH gbps_per_rank: 150', curve("all_reduce", s["v100.1x8.nvlink2"]))
          + tail(24, published))
    a100 = ('    all_reduce {\n      ranks: 8 nodes: 1 a_us: 24 g_us: 0.0086 bus_GBps: 235\n'
            '      source: "8 x A100-SXM4: 67.1 MB in 594 us and 32 KB in 28 us, as recorded in a Megatron run; the rate of long '
            'messages is from memory, no sweep of one node was found"\n    }\n')
    write("nvlink3", level('name: "nvlink3" size: 8 kind: SWITCH gbps_per_rank: 300', a100)
          + tail(24, "a recorded run and memory: see the curve"))
    # The sweep of 8 begins at 256 MiB: its latency is that of 4.
    write("nvlink4", level('name: "nvlink4" size: 8 kind: SWITCH gbps_per_rank: 450',
                           curve("all_reduce", s["h100-sxm.1x4.nvlink4"]) + curve("all_reduce", s["h100-sxm.1x8.nvlink4-nvls"], 25)
                           + '    other {\n      ranks: 8 nodes: 1 a_us: 25 g_us: 0.001 bus_GBps: 365\n      source: "rings on '
                           '8 x H100 SXM, from memory: all-gathers do not use the switch\'s sums"\n    }\n') + tail(24, published))
    write("xgmi-mi300x", level('name: "xgmi" size: 8 kind: RING gbps_per_rank: 448', curve("all_reduce", s["mi300x.1x8.xgmi"]))
          + tail(56, published))
    write("pcie4", level('name: "pcie4" size: 8 kind: RING gbps_per_rank: 31.5', curve("all_reduce", s["a100-pcie.1x4.nvbridge-pairs"]))
          + "  overlap: 0.5\n" + tail(8, published))
    write("nvbridge", level('name: "nvbridge" size: 2 kind: RING gbps_per_rank: 300', curve("all_reduce", s["a100-pcie.1x2.nc48"]))
          + tail(8, published))
    # Nodes.
    def nodes(name, inside, head, curves, aliases=(), sms=16, source=published):
        first = level(inside) if inside else level('name: "one GPU" size: 1 kind: SWITCH')
        write(name, first + level(head, curves) + tail(sms, source), aliases)

    nodes("eth25-roce", "", 'name: "eth25" kind: FAT_TREE nic_gbps: 25 nics_per_node: 1', curve("all_reduce", s["p40.2x1.roce25"]), sms=4)
    nodes("efa100", 'use: "nvlink2"', 'name: "efa100" kind: FAT_TREE nic_gbps: 100 nics_per_node: 1', curve("all_reduce", s["efa-2019.2x8.ring-only"]), sms=8)
    nodes("efa-k8s", 'use: "nvlink3"', 'name: "efa" kind: FAT_TREE nic_gbps: 100 nics_per_node: 4', curve("all_reduce", s["efa-k8s.2x8"]))
    nodes("efa400", 'use: "nvlink3"', 'name: "efa400" kind: FAT_TREE nic_gbps: 100 nics_per_node: 4', curve("all_reduce", s["a100-p4de.2x8.efa400"]))
    nodes("efa3200", 'use: "nvlink4"', 'name: "efa3200" kind: FAT_TREE nic_gbps: 100 nics_per_node: 32', curve("all_reduce", s["h100-p5.2x8.efa3200"]))
    nodes("roce-16x100", 'use: "nvlink3"', 'name: "roce" kind: FAT_TREE nic_gbps: 100 nics_per_node: 16', curve("all_reduce", s["a100-sxm4-40g.2x8.roce"]))
    nodes("tcpxo-8x200", 'use: "nvlink4"', 'name: "tcpxo" kind: FAT_TREE nic_gbps: 200 nics_per_node: 8', curve("other", s["h100-a3mega.2x8.all_gather"]), ["ib-hdr"])
    nodes("tcpx-4x200", 'use: "nvlink4"', 'name: "tcpx" kind: FAT_TREE nic_gbps: 200 nics_per_node: 4', curve("other", s["h100-a3high.2x8.all_gather"]))
    nodes("roce-8x400", 'use: "nvlink4"', 'name: "roce" kind: FAT_TREE nic_gbps: 400 nics_per_node: 8', curve("all_reduce", s["b200-a4.2x8.roce"])
          + curve("other", s["h200-a3ultra.2x8.all_gather"]), ["ib-ndr"],
          source="no one machine: its all-reduces were measured on B200, its gathers on H200, nodes are those of H100; each curve names its source")


if __name__ == "__main__":
    main()
