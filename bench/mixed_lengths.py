#!/usr/bin/env python3
"""Texts of mixed length: what computing on real tokens alone and arranging them by length gain.

    bench/mixed_lengths.py [--build build] [--before ../base/build] [--tasks sst2,rte,tweets] [--rounds 5] [--steps 24]
                           [--batch 64] [--model bert-mini] [--workers 2] [--out report.md]

ddp over two processes of one thread each; runs with the same settings and global batches in turn: by length (as usual), in
order (train.arrange=false) and, with --before, the program of another build, which has neither. Reported are medians of
examples per second without the first two steps, medians of the ratios within a round, and the exchange's share of a step, which
is mostly waiting for the other worker. A second table is arithmetic on the texts' lengths: the cost of a step's slowest worker
over the mean of all. Data: the folder $SYNCOPATE_SHARED (../shared).
"""
import csv
import json
import pathlib
import random
import shutil
import statistics
import sys
import tempfile

from harness import heading, median_of, parser_for, pick, ratios, report, result_of, rounds, row, run, shared, text_tasks

SPLITS = [(64, 2), (16, 2), (64, 8)]  # examples a step, workers


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


def lengths(program, task):
    """Of 2,000 training texts, in any order."""
    name = {"tweets": "davidson/labeled_data.csv", "sst2": "glue_sst2/train.tsv", "rte": "glue_rte/train.tsv"}[task]
    columns = {"tweets": ["tweet"], "sst2": ["sentence"], "rte": ["sentence1", "sentence2"]}[task]
    with open(shared() / "data" / name, encoding="utf-8", newline="") as file:
        table = csv.DictReader(file) if task == "tweets" else csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        rows = [[line[column] for column in columns] for line in table]
    random.Random(1).shuffle(rows)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for texts in rows[:2000]:
            file.write(json.dumps(dict(zip("ab", texts)) if len(texts) == 2 else {"text": texts[0]}) + "\n")
        file.flush()
        said = run([program, "tokenize", file.name, "--jsonl", "--max-length", 128,
                    "--vocab", shared() / "data/bert_vocab/vocab.txt"])
    return [len(json.loads(line)["ids"]) for line in said.splitlines()]


def slowest_over_mean(costs, batch, workers, dealt):
    """The mean over steps; `dealt` as syncopate/data/arrangement.h does it."""
    found = []
    for first in range(0, len(costs) - batch + 1, batch):
        loads = [0] * workers
        step = costs[first:first + batch]
        for number, cost in enumerate(sorted(step, reverse=True) if dealt else step):
            worker = min(range(workers), key=lambda w: loads[w]) if dealt else number * workers // batch
            loads[worker] += cost
        found.append(max(loads) * workers / sum(loads))
    return statistics.mean(found)


def loads_table(program, tasks):
    lines = heading("task", *(f"{batch} texts, {workers} workers: in order" if part == 0 else "by length"
                              for batch, workers in SPLITS for part in (0, 1)))
    for task in tasks:
        costs = [length + length * length // 1024 for length in lengths(program, task)]
        lines.append(row(task, *(f"{slowest_over_mean(costs, batch, workers, dealt):.2f}"
                                 for batch, workers in SPLITS for dealt in (False, True))))
    return lines


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
    tasks = pick(options.tasks, ",", known, "task")
    others = [side for side in sides if side != "by length"]
    lines = heading("task", *(f"{side}, examples/s" for side in sides), *(f"by length / {side}" for side in others),
                    *(f"exchange, {side}" for side in sides), "largest difference of losses")
    for task in tasks:
        flags = [*known[task], "--model", options.model, "--strategy", "ddp", "--workers", options.workers, "--threads", 1,
                 "--global-batch", options.batch, "--steps", options.steps, "--limit", options.steps * options.batch,
                 "--set", "task.test_limit=16"]
        found = {side: [] for side in sides}
        for number in rounds(options.rounds):
            for side in sorted(sides, reverse=number % 2 == 0):
                build, more = sides[side]
                found[side].append(measure(build / "syncopate", [*flags, *more]))
        by_length = found["by length"]
        gains = [statistics.median(ratios(by_length, found[side], "rate")) for side in others]
        apart = max(abs(a[key] / b[key] - 1) for key in ("loss", "last") for side in others
                    for a, b in zip(by_length, found[side]))
        lines.append(row(task, *(f"{median_of(found[side], 'rate'):.1f}" for side in sides),
                         *(f"{gain:.2f}" for gain in gains),
                         *(f"{100 * median_of(found[side], 'exchange'):.1f} %" for side in sides), f"{apart:.1e}"))
    report([*lines, "", f"- {options.model}, {options.workers} workers, {options.batch} examples a step, {options.rounds} rounds "
            f"of {options.steps} steps in turn", "", "Cost of a step's slowest worker over the mean of all:", "",
            *loads_table(options.build / "syncopate", tasks)], options.out)


if __name__ == "__main__":
    main()
