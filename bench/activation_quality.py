#!/usr/bin/env python3
"""What activations in a few bits cost in quality: AC-SGD and `direct` against an uncompressed pipeline, all seeds shown.

    bench/activation_quality.py --data FOLDER [--build build] [--what gpt,sst2,tweets] [--seeds 3] [--jobs 2] [--scale 1] [--epochs E]
        [--device cuda] [--arms "none;direct 2/6"] [--out FILE]

FOLDER holds tinyshakespeare/, books/ (both texts), glue_sst2/, davidson/ and minilm-l6/ as far as they are asked for. gpt: gpt-mini,
trained on books first (once), then on Shakespeare; sst2 and tweets: MiniLM with a fresh head. Every example is seen at least five
times. Each run is of real processes, one thread each; `--jobs` runs go side by side (times mean nothing then). Results so far are
kept in OUT.json: a run that is there is not made again.
"""
import concurrent.futures
import json
import math
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from harness import heading, parser_for, pick, report, result_of, row

# name: stages, replicas, activation codec, bits forward, backward, gradient codec, dropout
GPT = {
    "none": (2, 1, "none", 0, 0, "none", 0),
    "ac-sgd 4/8": (2, 1, "ac-sgd", 4, 8, "none", 0),
    "ac-sgd 3/6": (2, 1, "ac-sgd", 3, 6, "none", 0),
    "ac-sgd 2/6": (2, 1, "ac-sgd", 2, 6, "none", 0),
    "direct 4/8": (2, 1, "direct", 4, 8, "none", 0),
    "direct 3/6": (2, 1, "direct", 3, 6, "none", 0),
    "direct 2/6": (2, 1, "direct", 2, 6, "none", 0),
    "ac-sgd 4/8, gradients int8, 2 replicas": (2, 2, "ac-sgd", 4, 8, "int8", 0),
    "4 stages, none": (4, 1, "none", 0, 0, "none", 0),
    "4 stages, ac-sgd 2/6": (4, 1, "ac-sgd", 2, 6, "none", 0),
    "4 stages, direct 2/6": (4, 1, "direct", 2, 6, "none", 0),
    "none, dropout 0.1": (2, 1, "none", 0, 0, "none", 0.1),
    "ac-sgd 4/8, dropout 0.1": (2, 1, "ac-sgd", 4, 8, "none", 0.1),
}
TEXTS = {name: GPT[name] for name in ("none", "ac-sgd 4/8", "ac-sgd 3/6", "ac-sgd 2/6", "direct 2/6",
                                      "ac-sgd 4/8, gradients int8, 2 replicas")}
BASES = {"4 stages, ac-sgd 2/6": "4 stages, none", "4 stages, direct 2/6": "4 stages, none",
         "none, dropout 0.1": "none, dropout 0.1", "ac-sgd 4/8, dropout 0.1": "none, dropout 0.1"}


def flags_of(what, data, scale, epochs, start):
    if what == "gpt":
        return ["--task", "clm", "--data", data / "tinyshakespeare", "--init-from", start, "--limit", round(1008 * scale), "--epochs", epochs or 8,
                "--max-length", 128, "--global-batch", 8, "--lr", 5e-4, "--set", "task.test_limit=200"]
    task = ["--task", "sst2", "--data", data / "glue_sst2"] if what == "sst2" else [
        "--task", "csv", "--data", data / "davidson" / "labeled_data.csv", "--text", "tweet", "--label", "class",
        "--set", "task.test_limit=2000"]
    return [*task, "--init-from", data / "minilm-l6", "--limit", round(1600 * scale), "--epochs", epochs or 5, "--max-length", 64,
            "--global-batch", 16, "--lr", 1e-4]


def train(program, flags, folder):
    done = subprocess.run([str(word) for word in [program, "train", *flags, "--threads", 1, "--out", folder]], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, flags))}: {done.stderr[-500:]}")
    return result_of(folder)


def measure(program, what, arm, seed, options, start, folder):
    stages, replicas, codec, forward, backward, gradients, dropout = arm
    flags = [*flags_of(what, options.data, options.scale, options.epochs, start), "--device", options.device, "--seed", seed, "--workers", stages * replicas, "--stages", stages,
             "--strategy", "single" if replicas == 1 else "ddp", "--codec", gradients, "--dropout", dropout,
             "--set", "pipeline.micro_batches=4", "--activation-codec", codec]
    if codec != "none":
        flags += ["--set", f"activation.forward_bits={forward}", "--set", f"activation.backward_bits={backward}",
                  "--set", "activation.eval=both"]
    result = train(program, flags, folder)
    measures = result["eval"]
    main = "perplexity" if what == "gpt" else "accuracy"
    stages_seen = result.get("stages") or []
    return {"training": [math.exp(e["loss"]) if what == "gpt" else e["loss"] for e in result["epochs"]],
            "score": measures[main], "coded": measures.get(main + "_coded"),
            "curve": [e["eval"][main] for e in result["epochs"] if e.get("eval")],
            "stages": stages_seen, "bytes": result["bytes_sent_per_step"]}


def figures(runs, key):
    return [run[key] for run in runs if run[key] is not None]


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--what", default="gpt,sst2,tweets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1, help="of the number of examples")
    parser.add_argument("--epochs", type=int, default=0, help="default: 8 for gpt, 5 for texts")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--arms", default="", help="these alone, separated by semicolons")
    parser.add_argument("--start", type=Path, help="a model folder that gpt starts from, instead of training on the books")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.data = options.data.resolve()
    program = (options.build / "syncopate").resolve()
    chosen = pick(options.arms, ";", GPT, "arm")
    kept = options.out.with_suffix(".json")
    results = json.loads(kept.read_text()) if kept.exists() else {}
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as place:
        start = options.start
        if "gpt" in options.what.split(",") and start is None:
            train(program, ["--task", "clm", "--data", options.data / "books", "--model", "gpt-mini", "--set", "model.vocab_size=2000",
                            "--max-length", 128, "--workers", options.jobs, "--global-batch", 8 * options.jobs, "--time-limit", 120,
                            "--epochs", 1, "--lr", 1e-3, "--dropout", 0, "--set", "task.test_limit=50"], f"{place}/books")
            start = Path(f"{place}/books/model")
        todo = []
        for what in options.what.split(","):
            for seed in range(options.seeds):
                for name, arm in (GPT if what == "gpt" else TEXTS).items():
                    if name not in chosen:
                        continue
                    key = f"{what}|{name}|{seed}"
                    if key not in results:
                        todo.append((key, what, arm, seed))

        def work(item):
            key, what, arm, seed = item
            folder = f"{place}/{abs(hash(key))}"
            try:
                made = measure(program, what, arm, seed, options, start, folder)
            except RuntimeError as error:
                print(f"{key} failed: {error}", file=sys.stderr, flush=True)
                return
            with lock:
                results[key] = made
                kept.write_text(json.dumps(results))
                print(f"{key}: {made['training'][-1]:.3f} {made['score']:.4f} {made['coded']}", file=sys.stderr, flush=True)

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(work, todo))
    report(tables(results, options), options.out)


def tables(results, options):
    lines = []
    for what in options.what.split(","):
        arms = GPT if what == "gpt" else TEXTS
        runs = {name: [results[f"{what}|{name}|{seed}"] for seed in range(options.seeds) if f"{what}|{name}|{seed}" in results]
                for name in arms}
        lines += [f"## {what}", ""]
        lines += heading("arm", "training, last epoch", "against none", "score, all seeds", "mean", "against none",
                         "scored with compression", "bits a value forwards", "error of what is received", "sent a step")
        for name, made in runs.items():
            if not made:
                continue
            base = runs[BASES.get(name, "none")]
            last = statistics.fmean(run["training"][-1] for run in made)
            score = statistics.fmean(figures(made, "score"))
            paired = list(zip(made, base))
            if what == "gpt":
                excess = f"{100 * statistics.fmean(a['training'][-1] / b['training'][-1] - 1 for a, b in paired):+.1f} %"
                against = f"{100 * statistics.fmean(a['score'] / b['score'] - 1 for a, b in paired):+.1f} %"
                shown, mean = " ".join(f"{value:.2f}" for value in figures(made, "score")), f"{score:.2f}"
                coded = " ".join(f"{value:.2f}" for value in figures(made, "coded"))
            else:
                excess = f"{statistics.fmean(a['training'][-1] - b['training'][-1] for a, b in paired):+.3f}"
                against = f"{100 * statistics.fmean(a['score'] - b['score'] for a, b in paired):+.1f} points"
                shown, mean = " ".join(f"{100 * value:.1f}" for value in figures(made, "score")), f"{100 * score:.1f}"
                coded = " ".join(f"{100 * value:.1f}" for value in figures(made, "coded"))
            sending = [stage for run in made for stage in run["stages"] if stage.get("bits_forward")]
            bits = f"{statistics.fmean(stage['bits_forward'] for stage in sending):.1f}" if sending else ""
            errors = [stage["error_forward"] for run in made for stage in run["stages"] if stage.get("error_forward")]
            lines.append(row(name, f"{last:.3f}", excess, shown, mean, against, coded, bits,
                             f"{statistics.fmean(errors):.3f}" if errors else "", f"{statistics.fmean(figures(made, 'bytes')) / 1e3:.0f} kB"))
        if not any(runs.values()):
            lines += ["nothing was measured", ""]
            continue
        lines += ["", "Curves: the score after each epoch, mean over seeds.", ""]
        lines += heading("arm", *(f"epoch {i + 1}" for i in range(max(len(run["curve"]) for made in runs.values() for run in made))))
        for name, made in runs.items():
            if made:
                lines.append(row(name, *(f"{statistics.fmean(values):.3f}" for values in zip(*(run["curve"] for run in made)))))
        lines.append("")
    return lines


if __name__ == "__main__":
    sys.exit(main())
