#!/usr/bin/env python3
"""How far predictions are off: every cell of a grid is predicted by `syncopate advise` and trained in the lab.

    bench/advice.py [--build build] [--rounds 1] [--networks ...] [--workers 2,4] [--rows ...] [--seconds 12] [--longest 8]
                    [--pairs] [--out FILE]

Cells: strategies and codecs x workers x networks. The step is measured once for each number of workers in each round, cells
are interleaved over networks, and a cell's number is the median over rounds. An error is (predicted - measured) / measured
of the milliseconds per iteration. Beside the rows asked for, each network and number of workers has one worker and the row that is
fastest of all that advise knows, its recommendation: how much slower that is than the fastest that was measured is its regret. Cells
that fail are listed. Exits with 1 where a bound is missed: 60 cells, a median error of 10 %, a 90th percentile of 20 %, a regret of
10 %. Takes a model of bert-tiny on supersense (built-in). With --pairs every host has two workers (backend shm+gloo): four, on two hosts
that the slowest link of each network joins.
"""
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import heading, parser_for, pick, report, result_of, rounds, row, run, run_json, two_hosts

# By what their rates are divided, so that one machine can carry them and exchange is neither nothing nor everything.
NETWORKS = {"datacenter": 10, "spot": 4, "two-sites": 4, "regional": 4, "worldwide": 2}
ROWS = {
    "ddp": ("ddp", "none"),
    "all-reduce": ("all-reduce", "none"),
    "gather-scatter": ("gather-scatter", "none"),
    "ddp, int8": ("ddp", "int8"),
    "ddp, top-k": ("ddp", "top-k"),
    "ddp, power-sgd": ("ddp", "power-sgd"),
    "local-sgd": ("local-sgd", "none"),
    "parameter-server": ("parameter-server", "none"),
}
# Milliseconds one way and Gbit/s of the slowest link of each.
SLOWEST = {"datacenter": (0, 3.12), "spot": (0, 1.25), "two-sites": (11, 1.12), "regional": (67, 1.05), "worldwide": (238, 0.342)}
PER_HOST = 2
BOUNDS = {"cells": 60, "median": 0.10, "p90": 0.20, "regret": 0.10}
WARMUP = 2  # steps that a codec sums as they are


def task_flags(options):
    return ["--task", "supersense", "--model", options.model, "--max-length", str(options.length), "--limit", "4000",
            "--set", "task.test_limit=16"]


def profile(program, workers, options, folder):
    file = f"{folder}/profile-{workers}.json"
    run([program, "probe", "--no-links", "--profile", file, "--workers", workers, "--global-batch", options.batch,
         *(["--strategy", "single"] if workers == 1 else []), *task_flags(options)])
    return file


def predictions(program, network, scale, workers, file, options):
    advice = run_json([program, "advise", "--network", network, "--scale", scale, "--workers", f"{workers},{workers}", "--profile",
                       file, "--one-machine", "--global-batch", options.batch, "--json", *task_flags(options)])
    return {(r["strategy"], r["codec"], r["workers"]): r["predicted"] for r in advice["rows"] if r["workers"] == workers}


def cells_of(program, network, scale, count, files, names, options):
    """The rows asked for, one worker, and what advise recommends of everything it knows: name -> (strategy, codec, workers)."""
    known = {**predictions(program, network, scale, count, files[count], options),
             **predictions(program, network, scale, 1, files[1], options)}
    best = max(known, key=lambda row: known[row]["examples_per_s"])
    rows = {name: (*ROWS[name], count) for name in names}
    rows["single"] = ("single", "none", 1)
    recommended = next((name for name, row in rows.items() if row == best), None)
    if recommended is None:
        recommended = best[0] if best[1] == "none" else f"{best[0]}, {best[1]}"
        rows[recommended] = best
    return {name: (row, known[row]) for name, row in rows.items() if row in known}, recommended


def measure(program, network, scale, workers, names, expected_ms, options, folder):
    """The milliseconds of an iteration, without those in which a strategy falls into its rhythm; none: it failed."""
    strategy, codec = names
    every = 8 if strategy in ("local-sgd", "diloco") else 1
    first = max(every, WARMUP + 2 if codec in ("power-sgd", "one-bit") else 2)
    count = min(40, max(3, round(1e3 * options.seconds / expected_ms)))
    steps = first + (max(2, round(count / every)) * every if every > 1 else count)
    command = [program, "train", "--network", network, "--scale", scale, "--workers", workers, "--strategy", strategy, "--codec",
               codec, "--global-batch", options.batch, "--steps", steps, "--out", folder, *task_flags(options)]
    if codec in ("power-sgd", "one-bit"):
        command += ["--set", f"codec.warmup={WARMUP}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{' '.join(map(str, command))} failed:\n{done.stderr[-600:]}", file=sys.stderr)
        return None
    free = strategy in ("parameter-server", "hogwild")
    lines = [json.loads(line) for line in (Path(folder) / "steps.jsonl").read_text().splitlines()]
    counted = [line["ms"] for line in lines[first * (workers if free else 1):]]
    result = result_of(folder)
    return {"ms": statistics.fmean(counted) if free or every > 1 else statistics.median(counted),
            "steady": (result.get("network") or {}).get("trustworthy", True),
            "own": ((result.get("predicted") or {}).get("ms"), result["ms_per_iteration"]),
            "sent": result["bytes_sent_per_step"]}


def percentile(values, share):
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def errors_line(what, errors):
    return (f"- {what}: median {100 * statistics.median(errors):.1f} %, 90th percentile {100 * percentile(errors, 0.9):.1f} %, "
            f"largest {100 * max(errors):.1f} % of {len(errors)} cells")


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--networks", default="")
    parser.add_argument("--workers", default="2,4")
    parser.add_argument("--rows", default="", help="separated by ;")
    parser.add_argument("--scale", type=float, help="the same for all networks")
    parser.add_argument("--seconds", type=float, default=12, help="of training, roughly, in a cell")
    parser.add_argument("--longest", type=float, default=8, help="seconds of a predicted iteration above which a cell is left out")
    parser.add_argument("--model", default="bert-tiny")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32, help="of all workers together")
    parser.add_argument("--pairs", action="store_true", help="two workers on each host")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    program = (options.build / "syncopate").resolve()
    networks = pick(options.networks, ",", NETWORKS, "network")
    names = pick(options.rows, ";", ROWS, "row")
    workers = [2 * PER_HOST] if options.pairs else [int(text) for text in options.workers.split(",")]
    bounds = {**BOUNDS, "cells": 40} if options.pairs else BOUNDS
    cells, recommended, failed, slow = {}, {}, [], []
    took = []
    for _ in rounds(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            files = {count: profile(program, count, options, folder) for count in sorted({1, *workers})}
            places = {name: two_hosts(Path(folder) / f"{name}.toml", PER_HOST, *SLOWEST[name]) if options.pairs else name
                      for name in networks}
            plans = {}
            for count in workers:
                for network in networks:
                    scale = options.scale or NETWORKS[network]
                    plans[network, count], chosen = cells_of(program, places[network], scale, count, files, names, options)
                    recommended.setdefault((network, count), []).append(chosen)
            every_name = dict.fromkeys(name for plan in plans.values() for name in plan)
            for name in every_name:
                for (network, count), plan in plans.items():
                    if name not in plan:
                        continue
                    (strategy, codec, on), predicted = plan[name]
                    if predicted["ms"] > 1e3 * options.longest:
                        slow.append((network, count, name))
                        continue
                    scale = options.scale or NETWORKS[network]
                    began = time.monotonic()
                    into = f"{folder}/{network}-{count}-{name.replace(', ', '-')}"
                    seen = measure(program, places[network], scale, on, (strategy, codec), predicted["ms"], options, into)
                    took.append(time.monotonic() - began)
                    if seen is None:
                        failed.append((network, count, name))
                        continue
                    cells.setdefault((network, count, name), []).append((predicted, seen))
                    print(f"{network} {count} {name}: predicted {predicted['ms']:.0f}, measured {seen['ms']:.0f}",
                          file=sys.stderr, flush=True)

    lines = heading("network", "workers", "strategy", "predicted ms", "measured ms", "error", "sent, predicted", "sent", "")
    errors, own_errors, measured_ms, busy = [], [], {}, []
    for (network, count, name), pairs in sorted(cells.items()):
        good = [pair for pair in pairs if pair[1]["steady"]] or pairs
        predicted = statistics.median(p["ms"] for p, _ in good)
        measured = statistics.median(m["ms"] for _, m in good)
        error = statistics.median(p["ms"] / m["ms"] - 1 for p, m in good)
        steady = any(m["steady"] for _, m in pairs)
        if steady:
            errors.append(abs(error))
            own_errors += [abs(m["own"][0] / m["own"][1] - 1) for _, m in good if m["own"][0]]
            measured_ms.setdefault((network, count), {})[name] = measured
        else:
            busy.append((network, count, name))
        lines.append(row(network, count, name, f"{predicted:.1f}", f"{measured:.1f}", f"{100 * error:+.1f} %",
                         f"{good[0][0]['bytes_per_step'] / 1e3:.0f} kB", f"{good[0][1]['sent'] / 1e3:.0f} kB",
                         "" if steady else "machine too busy"))
    lines += ["", *heading("network", "workers", "recommended", "fastest", "slower by")]
    worst, missed = 0, []
    for (network, count), choices in sorted(recommended.items()):
        chosen = statistics.mode(choices)
        seen = measured_ms.get((network, count), {})
        if chosen not in seen:
            missed.append(f"{network}, {count} workers: the recommended {chosen} was not measured")
            lines.append(row(network, count, chosen, min(seen, key=seen.get) if seen else "", "not measured"))
            continue
        best = min(seen, key=seen.get)
        slower = seen[chosen] / seen[best] - 1
        worst = max(worst, slower)
        lines.append(row(network, count, chosen, best, f"{100 * slower:.1f} %"))
    lines.append("")
    for what, cases in (("failed", failed), ("left out, the machine was too busy", busy),
                         (f"left out, an iteration is predicted to take more than {options.longest:g} s", dict.fromkeys(slow))):
        if cases:
            lines.append(f"- {what}: " + "; ".join(f"{network}, {count} workers, {name}" for network, count, name in cases))
    if errors:
        lines.append(errors_line("error of advise", errors))
    if own_errors:
        lines.append(errors_line("error that train prints at its end, from the run's own compute", own_errors))
    lines += [f"- the recommendation is at most {100 * worst:.1f} % slower than the fastest measured",
              f"- a cell took {statistics.fmean(took):.0f} s" if took else "- nothing was measured"]
    if len(errors) < bounds["cells"]:
        missed.append(f"{len(errors)} cells count, fewer than {bounds['cells']}")
    if errors and statistics.median(errors) > BOUNDS["median"]:
        missed.append(f"the median error is above {100 * BOUNDS['median']:.0f} %")
    if errors and percentile(errors, 0.9) > BOUNDS["p90"]:
        missed.append(f"the 90th percentile of the error is above {100 * BOUNDS['p90']:.0f} %")
    if worst > BOUNDS["regret"]:
        missed.append(f"a recommendation is more than {100 * BOUNDS['regret']:.0f} % slower than the fastest")
    missed += [f"{network}, {count} workers, {name} failed" for network, count, name in failed]
    lines += [f"- MISSED: {what}" for what in missed]
    report(lines, options.out)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
