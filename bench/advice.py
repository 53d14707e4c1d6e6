#!/usr/bin/env python3
"""How far predictions are off: every cell of a grid is predicted by `syncopate advise` and trained in the lab.

    bench/advice.py [--build build] [--rounds 1] [--networks ...] [--workers 2,4] [--rows ...] [--seconds 12] [--out FILE]

Cells: strategies and codecs x workers x networks. The step is measured once for each number of workers in each round, cells
are interleaved over networks, and a cell's number is the median over rounds. An error is (predicted - measured) / measured
of the milliseconds per iteration. The regret of a recommendation is how much slower the fastest cell by prediction is than
the fastest by measurement, per network and number of workers. Takes a model of bert-tiny on supersense (built-in).
"""
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import heading, parser_for, pick, report, result_of, rounds, row, run, run_json

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
    return {(r["strategy"], r["codec"], r["workers"]): r for r in advice["rows"]}


def measure(program, network, scale, workers, names, expected_ms, options, folder):
    """The milliseconds of an iteration, without those in which a strategy falls into its rhythm; none: it failed."""
    strategy, codec = names
    every = 8 if strategy == "local-sgd" else 1
    first = max(every, WARMUP + 2)
    count = min(40, max(8, round(1e3 * options.seconds / expected_ms)))
    steps = first + (max(2, round(count / every)) * every if every > 1 else count)
    command = [program, "train", "--network", network, "--scale", scale, "--workers", workers, "--strategy", strategy, "--codec",
               codec, "--global-batch", options.batch, "--steps", steps, "--out", folder, *task_flags(options)]
    if codec in ("power-sgd", "one-bit"):
        command += ["--set", f"codec.warmup={WARMUP}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{' '.join(map(str, command))} failed:\n{done.stderr[-600:]}", file=sys.stderr)
        return None
    free = strategy == "parameter-server"
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
    parser.add_argument("--model", default="bert-tiny")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32, help="of all workers together")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    program = (options.build / "syncopate").resolve()
    networks = pick(options.networks, ",", NETWORKS, "network")
    names = pick(options.rows, ";", ROWS, "row")
    workers = [int(text) for text in options.workers.split(",")]
    cells = {}
    took = []
    for _ in rounds(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            files = {count: profile(program, count, options, folder) for count in workers}
            for name in names:
                for count in workers:
                    for network in networks:
                        scale = options.scale or NETWORKS[network]
                        found = predictions(program, network, scale, count, files[count], options).get((*ROWS[name], count))
                        if found is None:
                            continue
                        began = time.monotonic()
                        place = f"{folder}/{network}-{count}-{name.replace(', ', '-')}"
                        seen = measure(program, network, scale, count, ROWS[name], found["predicted"]["ms"], options, place)
                        took.append(time.monotonic() - began)
                        if seen is None:
                            continue
                        cells.setdefault((network, count, name), []).append((found["predicted"], seen))
                        print(f"{network} {count} {name}: predicted {found['predicted']['ms']:.0f}, measured {seen['ms']:.0f}",
                              file=sys.stderr, flush=True)

    lines = heading("network", "workers", "strategy", "predicted ms", "measured ms", "error", "sent, predicted", "sent", "")
    errors, own_errors, regrets = [], [], {}
    for (network, count, name), pairs in sorted(cells.items()):
        good = [pair for pair in pairs if pair[1]["steady"]] or pairs
        predicted = statistics.median(p["ms"] for p, _ in good)
        measured = statistics.median(m["ms"] for _, m in good)
        error = statistics.median(p["ms"] / m["ms"] - 1 for p, m in good)
        steady = any(m["steady"] for _, m in pairs)
        if steady:
            errors.append(abs(error))
            own_errors += [abs(m["own"][0] / m["own"][1] - 1) for _, m in good if m["own"][0]]
            regrets.setdefault((network, count), []).append((predicted, measured, name))
        lines.append(row(network, count, name, f"{predicted:.1f}", f"{measured:.1f}", f"{100 * error:+.1f} %",
                         f"{good[0][0]['bytes_per_step'] / 1e3:.0f} kB", f"{good[0][1]['sent'] / 1e3:.0f} kB",
                         "" if steady else "machine too busy"))
    lines += ["", *heading("network", "workers", "recommended", "fastest", "slower by")]
    worst = 0
    for (network, count), seen in sorted(regrets.items()):
        chosen, best = min(seen), min(seen, key=lambda each: each[1])
        worst = max(worst, chosen[1] / best[1] - 1)
        lines.append(row(network, count, chosen[2], best[2], f"{100 * (chosen[1] / best[1] - 1):.1f} %"))
    lines.append("")
    if errors:
        lines.append(errors_line("error of advise", errors))
    if own_errors:
        lines.append(errors_line("error that train prints at its end", own_errors))
    lines += [f"- the recommendation is at most {100 * worst:.1f} % slower than the fastest",
              f"- a cell took {statistics.fmean(took):.0f} s" if took else "- nothing was measured"]
    report(lines, options.out)


if __name__ == "__main__":
    main()
