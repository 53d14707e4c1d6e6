#!/usr/bin/env python3
"""What does our training reach on real data? Each recipe is run with several seeds by `syncopate train`; the
scores are printed as a table beside what plain PyTorch reached on the same files with the same settings.

    bench/quality.py --data DATA --build build --device cuda --precision bf16 --jobs 6 --only mnli,sst2

DATA is a folder with mnli/, glue_sst2/, glue_rte/, davidson/, squad_v1.1/, books/, cifar10/, minilm-l6/ and
bert_vocab/. Runs that are done in --out are not run again. A recipe that starts from another one's model waits for it.
"""
import csv
import json
import statistics
import time
from pathlib import Path

from harness import add_recipe_options, heading, parser_for, pick, result_of, row, side_by_side, train

FINE_TUNE = "--clip 1 --warmup 0.1 --schedule linear --set optim.weight_decay=0.01 --dropout 0.1".split()


def make_squad(data, out):
    """The given train file and three of four dev articles to train on, every fourth dev article to test on."""
    folder = out / "squad-split"
    if (folder / "dev.json").exists(): return folder
    folder.mkdir(parents=True, exist_ok=True)
    train = json.load(open(next((data / "squad_v1.1").glob("train*.json"))))["data"]
    dev = json.load(open(next((data / "squad_v1.1").glob("dev*.json"))))["data"]
    held = [article for i, article in enumerate(dev) if i % 4 == 3]
    train += [article for i, article in enumerate(dev) if i % 4 != 3]
    json.dump({"version": "1.1", "data": train}, open(folder / "train.json", "w"))
    json.dump({"version": "1.1", "data": held}, open(folder / "dev.json", "w"))
    return folder


def make_tweets(data, out):
    """Every fifth tweet is held out."""
    folder = out / "tweets-split"
    if (folder / "test.csv").exists(): return folder
    folder.mkdir(parents=True, exist_ok=True)
    with open(data / "davidson/labeled_data.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for name, keep in (("train", lambda i: i % 5 != 4), ("test", lambda i: i % 5 == 4)):
        with open(folder / f"{name}.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, ["tweet", "class"], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(row for i, row in enumerate(rows) if keep(i))
    return folder


def recipes(data, out):
    """name -> (what plain PyTorch reached, measures, arguments); "@name" is that recipe's model."""
    minilm, vocab = f"{data}/minilm-l6", f"{data}/bert_vocab/vocab.txt"
    squad = f"--task squad --batch-size 32 --epochs 3 --max-length 320 --set task.stride=128".split()
    mnli = f"--task mnli --data {data}/mnli --batch-size 32 --epochs 3 --max-length 128".split()
    sst2 = f"--task sst2 --data {data}/glue_sst2 --batch-size 64 --epochs 1 --max-length 128".split()
    rte = f"--task rte --data {data}/glue_rte --batch-size 32 --epochs 6 --max-length 192".split()
    tweets = f"--task csv --text tweet --label class --batch-size 32 --max-length 64".split()
    mini = ["--model", "bert-mini", "--vocab", vocab, "--lr", "3e-4"]
    books = ["--init-from", "@books", "--lr", "3e-4"]
    lm = ["--model", minilm]
    tune = FINE_TUNE
    tweet_data = lambda: ["--data", str(make_tweets(data, out))]
    squad_data = lambda: ["--data", str(make_squad(data, out))]
    return {
        "mnli-minilm": ("66.7 66.4", ["accuracy"], lambda: tune + mnli + lm + ["--lr", "1e-4"]),
        "sst2-minilm": ("89.1", ["accuracy"], lambda: tune + sst2 + lm + ["--lr", "5e-5"]),
        "rte-minilm": ("56.0 54.5", ["accuracy"], lambda: tune + rte + lm + ["--lr", "1e-4"]),
        "rte-after-mnli": ("", ["accuracy"], lambda: tune + rte + ["--init-from", "@mnli-minilm", "--lr", "1e-4"]),
        "tweets-minilm": ("91.3 / 73.4, 91.1 / 73.4", ["accuracy", "macro_f1"],
                          lambda: tune + tweets + tweet_data() + lm + "--epochs 2 --lr 1e-4".split()),
        "squad-minilm": ("61.1 / 73.3, 62.2 / 74.0", ["exact_match", "f1"],
                         lambda: tune + squad + squad_data() + lm + ["--lr", "2e-4"]),
        "books": ("2.68", ["loss", "perplexity"],
                  lambda: tune + f"--task mlm --data {data}/books --batch-size 256 --epochs 40 --max-length 128 --lr 1e-3 "
                          f"--model bert-mini --vocab {vocab}".split()),
        "mnli-mini": ("42.3 44.3", ["accuracy"], lambda: tune + mnli + mini),
        "sst2-mini": ("81.4 81.8", ["accuracy"], lambda: tune + sst2 + mini),
        "tweets-mini": ("90.3 / 70.5, 89.8 / 67.6", ["accuracy", "macro_f1"],
                        lambda: tune + tweets + tweet_data() + mini + "--epochs 3".split()),
        "mnli-books": ("51.6 49.6", ["accuracy"], lambda: tune + mnli + books),
        "sst2-books": ("84.4", ["accuracy"], lambda: tune + sst2 + books),
        "tweets-books": ("91.2 / 73.7, 90.7 / 73.5", ["accuracy", "macro_f1"],
                         lambda: tune + tweets + tweet_data() + books + "--epochs 3".split()),
        "cifar10": ("92.63", ["accuracy", "top5"],
                    lambda: f"--task cifar10 --data {data}/cifar10 --model resnet-18 --batch-size 64 --epochs 15 --optimizer sgd "
                            "--lr 0.1 --set optim.nesterov=true --set optim.weight_decay=5e-4 --schedule linear --warmup 0.2 "
                            "--clip 0 --label-smoothing 0.1 --set compute.loader_threads=4".split()),
        "fashion": ("goal 89", ["accuracy"],
                    lambda: "--task idx --model resnet-8 --global-batch 128 --epochs 2 --optimizer sgd --lr 0.1 "
                            "--set optim.weight_decay=5e-4 --schedule cosine --warmup 0.1 --clip 0 "
                            "--set task.augment=false".split()),
    }


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--data", required=True, type=Path)
    add_recipe_options(parser, out="runs/quality", workers=1, seeds="1,2,3")
    parser.add_argument("--strategy", default="")
    parser.add_argument("--only", default="", help="recipes, by commas; default: all")
    parser.add_argument("--once", default="books", help="recipes that are run with the first seed alone")
    parser.add_argument("--extra", default="", help="more arguments for every run")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    known = recipes(options.data.resolve(), options.out.resolve())
    chosen = pick(options.only, ",", known, "recipe")
    for name in list(chosen):  # what a recipe starts from is run too
        chosen += [argument[1:] for argument in known[name][2]() if argument.startswith("@") and argument[1:] not in chosen]
    seeds = [int(seed) for seed in options.seeds.split(",")]
    once = options.once.split(",")
    strategy = options.strategy or ("single" if options.workers == 1 else "ddp")

    def folder(name, seed):
        return options.out / f"{name}-{seeds[0] if name in once else seed}"

    def run(job):
        name, seed = job
        out = folder(name, seed)
        arguments = known[name][2]()
        for i, argument in enumerate(arguments):
            if not argument.startswith("@"): continue
            needed = folder(argument[1:], seed)
            while not (needed / "DONE").exists():
                if (needed / "FAILED").exists(): return f"{name} {seed}: what it starts from failed"
                time.sleep(1)
            arguments[i] = str(needed)
        if (out / "DONE").exists(): return ""
        failure = train(options, [*arguments, "--seed", str(seed), "--strategy", strategy, *options.extra.split()], out)
        if not failure: return ""
        out.mkdir(parents=True, exist_ok=True)
        (out / "FAILED").touch()
        return f"{name} {seed}: {failure}"

    jobs = [(name, seed) for name in chosen for seed in (seeds[:1] if name in once else seeds)]
    jobs.sort(key=lambda job: any(argument.startswith("@") for argument in known[job[0]][2]()))  # what waits comes last
    for job in jobs: (folder(*job) / "FAILED").unlink(missing_ok=True)
    side_by_side(jobs, run, options.jobs)

    print(*heading("recipe", "plain PyTorch", "each seed", "mean", "seconds of training"), sep="\n")
    for name in chosen:
        reference, measures, _ = known[name]
        rows, seconds = [], []
        for seed in seeds[:1] if name in once else seeds:
            record = result_of(folder(name, seed))
            if record is None: continue
            scale = lambda measure, value: value if measure in ("loss", "perplexity", "exact_match", "f1") else 100 * value
            rows.append([scale(measure, record["eval"][measure]) for measure in measures])
            seconds.append(record["train_seconds"])
        if not rows: continue
        text = lambda values: " / ".join(f"{value:.2f}" for value in values)
        means = [statistics.mean(column) for column in zip(*rows)]
        print(row(f"{name} ({', '.join(measures)})", reference, ", ".join(map(text, rows)), text(means),
                  f"{statistics.mean(seconds):.0f}"), flush=True)


if __name__ == "__main__":
    main()
