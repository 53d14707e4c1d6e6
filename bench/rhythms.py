#!/usr/bin/env python3
"""What does each rhythm of synchronisation cost in quality? Every rhythm sees the same examples; its learning rate is chosen
by a small sweep on one seed, then it runs with others. The peak rate is all that differs beside the rhythm itself.

    bench/rhythms.py [--build build] [--set supersense|tweets] [--data DATA] [--jobs 1] [--only "ddp;hogwild"] [--out runs/rhythms]

supersense: built-in data, 25,000 definitions, bert-tiny, 4 workers, 8 examples a worker and step. tweets: DATA holds davidson/
and minilm-l6/; 4 workers fine-tune MiniLM. Rates are chosen by runs of one epoch, also where --epochs asks for more of the runs
that follow. Runs that are done in --out are not run again.
"""
import argparse
import json
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from quality import make_tweets


class Job(NamedTuple):
    name: str
    rate: float
    seed: int
    epochs: int = 1


RHYTHMS = {
    "ddp": "--strategy ddp",
    "accumulate 4": "--strategy ddp --accumulate 4",
    "local-sgd, every 8": "--strategy local-sgd --set strategy.every=8",
    "post-local, every 8 from the middle": "--strategy local-sgd --set strategy.every=8 --set strategy.post_local_start={half}",
    "diloco, every 20": "--strategy diloco --set strategy.every=20",
    "diloco, every 20, outer momentum 0.5": "--strategy diloco --set strategy.every=20 --set strategy.outer_momentum=0.5",
    "hogwild": "--strategy hogwild",
    "parameter-server, free": "--strategy parameter-server --set strategy.staleness=inf",
    "ddp, int8": "--strategy ddp --codec int8",
    "ddp, int4": "--strategy ddp --codec int4",
    "ddp, top-k 1 %": "--strategy ddp --codec top-k --set codec.ratio=0.01",
    "ddp, power-sgd": "--strategy ddp --codec power-sgd",
    "ddp, one-bit": "--strategy ddp --codec one-bit",
}


def common(options):
    """Settings that all rhythms share, how many steps ddp makes, the measure, the rates."""
    if options.set == "supersense":
        settings = "--task supersense --model bert-tiny --limit 25000 --batch-size 8 --max-length 48 --dropout 0 --clip 0.5"
        return settings.split(), 782, "accuracy", [5e-4, 1e-3, 2e-3]
    settings = (f"--task csv --data {make_tweets(options.data.resolve(), options.out.resolve())} --text tweet --label class "
                f"--model {options.data.resolve()}/minilm-l6 --limit {options.limit} --batch-size 8 --max-length 64 "
                "--clip 1 --set optim.weight_decay=0.01")
    return settings.split(), options.limit // 32, "macro_f1", [1e-4, 2e-4]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=Path)
    parser.add_argument("--set", default="supersense", choices=["supersense", "tweets"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int, default=8000, help="tweets to train on")
    parser.add_argument("--out", default="runs/rhythms", type=Path)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--epochs", type=int, default=1, help="of the runs after the sweep")
    parser.add_argument("--seeds", default="2,3,4")
    parser.add_argument("--sweep-seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--only", default="", help="rhythms, separated by semicolons; default: all")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    settings, steps, measure, rates = common(options)
    chosen = [name.strip() for name in options.only.split(";") if name.strip()] or list(RHYTHMS)
    for name in chosen:
        if name not in RHYTHMS:
            sys.exit(f"there is no rhythm {name}; there are: {'; '.join(RHYTHMS)}")
    seeds = [int(seed) for seed in options.seeds.split(",")]

    def folder(job):
        name = job.name.replace(" ", "").replace("%", "").replace(",", "-")
        longer = f"{job.epochs}epochs-" if job.epochs > 1 else ""
        return options.out / f"{options.set}-{name}-{job.rate:g}-{longer}{job.seed}"

    def run(job):
        out = folder(job)
        if (out / "DONE").exists():
            return
        shutil.rmtree(out, ignore_errors=True)  # what an interrupted run left
        rhythm = RHYTHMS[job.name].format(half=job.epochs * steps // 2).split()
        command = [str(options.build / "syncopate"), "train", *settings, *rhythm, "--epochs", str(job.epochs), "--lr", str(job.rate),
                   "--seed", str(job.seed), "--out", str(out), "--workers", str(options.workers), "--device", options.device,
                   "--precision", options.precision, "--threads", "1"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        (options.out / f"{out.name}.log").write_text(" ".join(command) + "\n" + done.stderr)
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode
            print(f"{job.name}, rate {job.rate:g}, seed {job.seed}: {last}", file=sys.stderr, flush=True)

    def record(job):
        result = folder(job) / "result.json"
        return json.load(open(result)) if result.exists() else None

    def score(job):
        found = record(job)
        return 100 * found["eval"][measure] if found else float("nan")

    def in_parallel(jobs):
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(run, jobs))

    # A rhythm whose best rate is at an end of its row gets another one beyond it, at most twice.
    swept = {name: list(rates) for name in chosen}
    best = {}
    for _ in range(3):
        in_parallel([Job(name, rate, options.sweep_seed) for name in chosen for rate in swept[name]])
        for name in chosen:
            scored = [(score(Job(name, rate, options.sweep_seed)), rate) for rate in swept[name]]
            scored = [pair for pair in scored if pair[0] == pair[0]]
            if not scored:
                continue
            best[name] = max(scored)[1]
            if len(swept[name]) > len(rates) + 1:
                continue
            if best[name] == min(swept[name]):
                swept[name].insert(0, best[name] / 2)
            elif best[name] == max(swept[name]):
                swept[name].append(best[name] * 2)
    in_parallel([Job(name, best[name], seed, options.epochs) for seed in seeds for name in best])

    print(f"| rhythm | sweep, seed {options.sweep_seed} (rate: {measure}) | rate | seeds {options.seeds} | mean | against ddp | examples | kB sent a step and worker |")
    print("|---|---|---|---|---|---|---|---|")
    reference = None
    for name in best:
        jobs = [Job(name, best[name], seed, options.epochs) for seed in seeds]
        scores = [score(job) for job in jobs]
        mean = statistics.mean(scores)
        reference = mean if reference is None else reference
        last = record(jobs[0]) or {}
        sweep = ", ".join(f"{rate:g}: {score(Job(name, rate, options.sweep_seed)):.2f}" for rate in swept[name])
        print(f"| {name} | {sweep} | {best[name]:g} | {' '.join(f'{s:.2f}' for s in scores)} | {mean:.2f} | {mean - reference:+.2f} | "
              f"{last.get('examples', 0)} | {last.get('bytes_sent_per_step', 0) / 1e3:.0f} |", flush=True)


if __name__ == "__main__":
    main()
