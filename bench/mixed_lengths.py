#!/usr/bin/env python3
"""Texts of mixed length: what computing on real tokens alone and arranging them by length gain.

    bench/mixed_lengths.py [--build build] [--before ../base/build] [--tasks sst2,rte,tweets] [--rounds 5] [--steps 24]
                           [--batch 64] [--model bert-mini] [--workers 2] [--out report.md]

ddp over two processes of one thread each; runs with the same settings and global batches in turn: by length (as usual), in
order (train.arrange=false) and, with --before, the program of another build, which has neither. Reported are medians of
examples per second without the first two steps, medians of the ratios within a round, and what the slower worker waits less:
the exchange's share of a step, which is mostly waiting for the other worker. Data: the folder $SYNCOPATE_SHARED (../shared).
"""
import json
import pathlib
import shutil
import statistics
import sys
import tempfile

from harness import heading, median_of, parser_for, pick, report, result_of, rounds, row, run, text_tasks


def measure(program, flags):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mixed-"))
    run([program, "train", *flags, "--out", folder / "run"])
    steps = [json.loads(line) for line in (folder / "run/steps.jsonl").read_text().splitlines()]
    loss = result_of(folder / "run")["train_loss"]
    shutil.rmtree(folder)
    timed = steps[2:]
    total = sum(step["ms"] for step in timed)
    return {"rate": 1e3 * sum(step["examples"] for step in timed) / total, "loss": loss, "last": steps[-1]["loss"],
            "exchange": sum(step["exchange_ms"] for step in timed) / total}


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--before", type=pathlib.Path, help="build folder of the code before the change")
    parser.add_argument("--tasks", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--batch", type=int, default=64, help="examples per step over all workers")
    parser.add_argument("--model", default="bert-mini")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    if options.steps < 3:
        sys.exit("--steps must be 3 or more: the first two are not counted")
    known = text_tasks()
    sides = {"in order": (options.build, ["--set", "train.arrange=false"]), "by length": (options.build, [])}
    if options.before:
        sides = {"before": (options.before, []), **sides}
    lines = heading("task", *(f"{side}, examples/s" for side in sides), *(f"by length / {side}" for side in sides if side != "by length"),
                    *(f"exchange, {side}" for side in sides), "largest difference of losses")
    for task in pick(options.tasks, ",", known, "task"):
        flags = [*known[task], "--model", options.model, "--strategy", "ddp", "--workers", options.workers, "--threads", 1,
                 "--global-batch", options.batch, "--steps", options.steps, "--limit", options.steps * options.batch,
                 "--set", "task.test_limit=16"]
        found = {side: [] for side in sides}
        for number in rounds(options.rounds):
            for side in sorted(sides, reverse=number % 2 == 0):
                build, more = sides[side]
                found[side].append(measure(build / "syncopate", [*flags, *more]))
        ratios = {side: statistics.median(a["rate"] / b["rate"] for a, b in zip(found["by length"], found[side])) for side in sides}
        apart = max(abs(a[key] / b[key] - 1) for key in ("loss", "last") for side in sides
                    for a, b in zip(found["by length"], found[side]))
        lines.append(row(task, *(f"{median_of(found[side], 'rate'):.1f}" for side in sides),
                         *(f"{ratios[side]:.2f}" for side in sides if side != "by length"),
                         *(f"{100 * median_of(found[side], 'exchange'):.1f} %" for side in sides), f"{apart:.1e}"))
    report([*lines, "", f"- {options.model}, {options.workers} workers, {options.batch} examples a step, {options.rounds} rounds of "
            f"{options.steps} steps in turn"], options.out)


if __name__ == "__main__":
    main()
