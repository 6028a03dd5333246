#!/usr/bin/env python3
"""How near other learners come to the products of the tables: what the surfaces are off by, beside
trees and neighbours that have the same two thirds of the shapes, and beside what engines differ by.

    python3 costmodel/fit/floors.py DATA        minutes; prints a table of docs/cost-model.md, and
                                                writes tests/costmodel/floors.csv for another

DATA as for surfaces.py. Errors are mean / by time, %, on the third of shapes that tests hold out. No
column is part of the program. The best of the trees is chosen on the answers: it flatters them, and is
no proof that nothing else comes nearer. Needs numpy, scipy and scikit-learn.
"""
import collections
import csv
import gzip
import itertools
import pathlib
import sys

try:
    import numpy as np
    from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
    import surfaces
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TILES = [(64, 64), (128, 128), (128, 256), (256, 128), (64, 256)]
CSV = surfaces.HELD_OUT.parent / "floors.csv"


def features(table, *more):
    """Sizes and what they share, powers of two in them, how full the waves of a tile are."""
    m, n, k = table.shapes.T
    logs = np.log2(table.shapes)
    columns = list(logs.T) + [logs[:, [0, 1]].sum(1), logs[:, [0, 2]].sum(1), logs[:, [1, 2]].sum(1)]
    columns += [np.log2(x.astype(int) & -x.astype(int)) for x in (m, n, k)]
    for rows, wide in TILES:
        waves = np.ceil(m / rows) * np.ceil(n / wide) / table.device.processors
        columns += [np.log2(waves), np.ceil(waves) / waves, np.ceil(m / rows) * rows / m]
    return np.array(columns + list(more)).T


def learners():
    return {"boosted": HistGradientBoostingRegressor(loss="absolute_error", max_iter=150,
                                                     learning_rate=0.05, min_samples_leaf=15,
                                                     max_leaf_nodes=8, random_state=0),
            "forest": ExtraTreesRegressor(200, min_samples_leaf=4, random_state=0)}


def on_surface(table, logs, known):
    """The surface of those two thirds, and for them the surface of three of their four quarters."""
    value, quarter = np.zeros(len(table.shapes)), surfaces.folds(table, "shape", 4)
    for part in [*range(4), None]:
        rest = np.flatnonzero(known & (quarter != part)) if part is not None else np.flatnonzero(known)
        out = known & (quarter == part) if part is not None else ~known
        nodes = surfaces.on_nodes(table, logs, rest)
        value[out] = table.model(logs, out) + surfaces.between_nodes(nodes, table.shapes[out])
    return value


def nearest(table, known, asked, near):
    """What the four nearest known shapes are off the wave model by."""
    logs = np.log2(table.shapes)
    far = ((logs[asked][:, None] - logs[known][None]) ** 2).sum(2) + 1e-3
    four = np.argsort(far, 1)[:, :4]
    weight = 1 / np.take_along_axis(far, four, 1)
    return (weight * near[known][four]).sum(1) / weight.sum(1)


def whoever_asks(table):
    """One answer where all three engines timed a shape, the best there is for somebody who asks as the
    table does: about the median of the engines that happened to time it. Mean error only."""
    rows = [dict(r) for r in table.rows]
    sets = collections.Counter(tuple(sorted(r)) for r in rows)
    off = []
    for row in (r for r in rows if len(r) == 3):
        asked = np.array([np.exp(np.median([np.log(row[e]) for e in some])) for some in sets])
        weight = np.array(list(sets.values()), float) / len(rows)
        off.append(min((weight * np.abs(x / asked - 1)).sum() for x in asked))
    return 100 * np.mean(off)


def rows_of(table, value, engine_told):
    """Rows of single engines from the same two thirds, by a forest."""
    engines = sorted({e for r in table.rows for e, _ in r})
    shape, engine, log_us = np.array([(i, engines.index(e), np.log(us)) for i, r in
                                      enumerate(table.rows) for e, us in r]).T
    shape = shape.astype(int)
    told = [np.equal(engine, i).astype(float) for i in range(len(engines) if engine_told else 0)]
    columns = np.column_stack([features(table, value)[shape], *told])
    known = surfaces.folds(table, "shape")[shape] != 0
    forest = learners()["forest"].fit(columns[known], (log_us - value[shape])[known])
    return surfaces.of_median(log_us[~known], (value[shape] + forest.predict(columns))[~known])


def transfer(here, there, value, value_there):
    """The time of a product of one engine from its time on another GPU, by trees that also know its
    sizes and both surfaces, and what two thirds of the same products took on both."""
    known_here = {tuple(s): i for i, s in enumerate(here.shapes)}
    rows = []
    for j, shape in enumerate(there.shapes):
        i = known_here.get(tuple(shape))
        times = dict(here.rows[i]) if i is not None else {}
        rows += [(i, j, np.log(times[e]), np.log(us)) for e, us in there.rows[j] if e in times]
    i, j, before, log_us = np.array(rows).T
    i, j = i.astype(int), j.astype(int)
    start = value_there[j]
    columns = np.column_stack([features(there, value_there)[j], value[i], before - value[i]])
    known = surfaces.folds(there, "shape")[j] != 0
    errors = []
    for learner in learners().values():
        learner.fit(columns[known], (log_us - start)[known])
        errors.append(surfaces.of_median(log_us[~known], (start + learner.predict(columns))[~known]))
    return np.min(errors, 0)


def never_seen(table, tables):
    """A GPU from the rows of the others, by trees on what the data sheet says each product needs."""
    def needs(t):
        m, n, k = t.shapes.T
        moved = t.element * m * k + t.weight_element * n * k + 2 * m * n
        arithmetic, memory = np.log(2 * m * n * k / t.peak), np.log(moved / t.device.bandwidth)
        bound = np.maximum(arithmetic, memory)
        in_cache = np.log(moved / t.device.l2)
        return features(t, arithmetic, memory, in_cache), np.log(np.exp(bound) + 2.5)
    others = [(t, *needs(t)) for t in tables if t is not table]
    columns, start = needs(table)
    errors = []
    for learner in learners().values():
        learner.fit(np.concatenate([x for _, x, _ in others]),
                    np.concatenate([t.log_us - y for t, _, y in others]))
        errors.append(surfaces.of_median(table.log_us, start + learner.predict(columns)))
    return np.min(errors, 0)


def main():
    with gzip.open(pathlib.Path(sys.argv[1]) / "gemm.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    both, floors = "%.1f / %.1f", []
    print("| format, GPU | surface | of 9 of 10 draws, by time | four nearest | best of trees | "
          "rows, engine not told | rows, told | one answer for whoever asks |\n" + "|---" * 8 + "|")
    for source, name, *cores in surfaces.FORMATS:
        tables = [surfaces.Table(rows, g, source, name, *cores) for g in surfaces.DEVICES]
        tables = [t for t in tables if len(t.shapes) and t.peak]
        shared = surfaces.shared_constants([t.without(0) for t in tables])
        values = []
        for table in tables:
            asked = surfaces.folds(table, "shape") == 0
            logs = surfaces.own_constants(table.without(0), shared)
            value = on_surface(table, logs, ~asked)
            values.append(value)
            model = table.model(logs)
            trees = []
            for learner in list(learners().values()):
                for start in (value, model):
                    columns = features(table, *([value] if start is value else []))
                    learner.fit(columns[~asked], (table.log_us - start)[~asked])
                    trees.append(surfaces.of_median(
                        table.log_us[asked], (start + learner.predict(columns))[asked]))
            draws = np.random.default_rng(0).choice(np.flatnonzero(asked), (1000, asked.sum()))
            by_time = [surfaces.of_median(table.log_us[d], value[d])[1] for d in draws]
            four = model[asked] + nearest(table, ~asked, asked, table.log_us - model)
            near = surfaces.of_median(table.log_us[asked], four)
            print(f"| {name}, {table.device.name} |",
                  both % surfaces.of_median(table.log_us[asked], value[asked]),
                  "| %.1f to %.1f |" % tuple(np.quantile(by_time, [0.05, 0.95])),
                  both % near, "|",
                  both % tuple(np.min(trees, 0)), "|", both % rows_of(table, value, False), "|",
                  both % rows_of(table, value, True), f"| {whoever_asks(table):.1f} |", flush=True)
            floors.append(("shapes", name, "", table.device.name, *np.min(trees + [near], 0)))
            floors.append(("waves", name, "", table.device.name,
                           *surfaces.of_median(table.log_us, model)))
        if name != "bf16":
            continue
        for a, b in itertools.permutations(range(len(tables)), 2):
            floors.append(("transfer", name, tables[a].device.name, tables[b].device.name,
                           *transfer(tables[a], tables[b], values[a], values[b])))
        for table in tables:
            floors.append(("unseen", name, "", table.device.name, *never_seen(table, tables)))
    with CSV.open("w") as file:
        file.write("kind,format,from,gpu,mean,by_time\n")
        file.writelines("%s,%s,%s,%s,%.1f,%.1f\n" % row for row in floors)


if __name__ == "__main__":
    main()
