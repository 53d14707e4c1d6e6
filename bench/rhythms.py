#!/usr/bin/env python3
"""What does each rhythm of synchronisation cost in quality? Every rhythm sees the same examples; its learning rate is chosen
by a small sweep on one seed, then it runs with others. The peak rate is all that differs beside the rhythm itself.

    bench/rhythms.py [--build build] [--set supersense|tweets] [--data DATA] [--jobs 1] [--only "ddp;hogwild"] [--out runs/rhythms]

supersense: built-in data, 25,000 definitions, bert-tiny, 4 workers, 8 examples a worker and step. tweets: DATA holds davidson/
and minilm-l6/; 4 workers fine-tune MiniLM. Rates are chosen by runs of one epoch, also where --epochs asks for more of the runs
that follow. Runs that are done in --out are not run again.
"""
import shutil
import statistics
from pathlib import Path
from typing import NamedTuple

from harness import add_recipe_options, heading, parser_for, pick, result_of, row, side_by_side, train
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
    parser = parser_for(__doc__)
    parser.add_argument("--set", default="supersense", choices=["supersense", "tweets"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int, default=8000, help="tweets to train on")
    add_recipe_options(parser, out="runs/rhythms", workers=4, seeds="2,3,4")
    parser.add_argument("--epochs", type=int, default=1, help="of the runs after the sweep")
    parser.add_argument("--sweep-seed", type=int, default=1)
    parser.add_argument("--only", default="", help="rhythms, separated by semicolons; default: all")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    settings, steps, measure, rates = common(options)
    chosen = pick(options.only, ";", RHYTHMS, "rhythm")
    seeds = [int(seed) for seed in options.seeds.split(",")]

    def folder(job):
        name = job.name.replace(" ", "").replace("%", "").replace(",", "-")
        longer = f"{job.epochs}epochs-" if job.epochs > 1 else ""
        return options.out / f"{options.set}-{name}-{job.rate:g}-{longer}{job.seed}"

    def run(job):
        out = folder(job)
        if (out / "DONE").exists():
            return ""
        shutil.rmtree(out, ignore_errors=True)  # what an interrupted run left
        rhythm = RHYTHMS[job.name].format(half=job.epochs * steps // 2).split()
        failure = train(options, [*settings, *rhythm, "--epochs", str(job.epochs), "--lr", str(job.rate), "--seed", str(job.seed),
                                  "--threads", "1"], out)
        return f"{job.name}, rate {job.rate:g}, seed {job.seed}: {failure}" if failure else ""

    def score(job):
        found = result_of(folder(job))
        return 100 * found["eval"][measure] if found else float("nan")

    # A rhythm whose best rate is at an end of its row gets another one beyond it, at most twice.
    swept = {name: list(rates) for name in chosen}
    best = {}
    for _ in range(3):
        side_by_side([Job(name, rate, options.sweep_seed) for name in chosen for rate in swept[name]], run, options.jobs)
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
    side_by_side([Job(name, best[name], seed, options.epochs) for seed in seeds for name in best], run, options.jobs)

    print(*heading("rhythm", f"sweep, seed {options.sweep_seed} (rate: {measure})", "rate", f"seeds {options.seeds}", "mean",
                   "against ddp", "examples", "kB sent a step and worker"), sep="\n")
    reference = None
    for name in best:
        jobs = [Job(name, best[name], seed, options.epochs) for seed in seeds]
        scores = [score(job) for job in jobs]
        mean = statistics.mean(scores)
        reference = mean if reference is None else reference
        last = result_of(folder(jobs[0])) or {}
        sweep = ", ".join(f"{rate:g}: {score(Job(name, rate, options.sweep_seed)):.2f}" for rate in swept[name])
        print(row(name, sweep, f"{best[name]:g}", " ".join(f"{s:.2f}" for s in scores), f"{mean:.2f}", f"{mean - reference:+.2f}",
                  last.get("examples", 0), f"{last.get('bytes_sent_per_step', 0) / 1e3:.0f}"), flush=True)


if __name__ == "__main__":
    main()
