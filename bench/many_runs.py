#!/usr/bin/env python3
"""Makes a sweep of many finished runs, and times `syncopate report` on it.

    bench/many_runs.py FOLDER [--runs 10000] [--steps 200] [--program build/syncopate]

The figures are drawn from a seeded generator: they look like runs and mean nothing.
"""
import argparse
import json
import pathlib
import random
import subprocess
import time

SEEDS = 5


def spec(strategy, workers, lr, seed):
    settings = {"task.name": "supersense", "task.data": "", "task.limit": 30000, "model.name": "bert-tiny",
                "strategy.name": strategy, "codec.name": "none", "optim.name": "adamw", "optim.lr": lr,
                "train.global_batch": 32, "train.steps": 0, "train.seed": seed, "comm.workers": workers,
                "compute.threads": 1}
    settings.update({f"optim.setting{i}": i / 7 for i in range(70)})  # as many as a real one has
    return settings


def result(strategy, workers, seed, steps, speed, accuracy, draw):
    classes = 45
    confusion = [[draw.randrange(8) for _ in range(classes)] for _ in range(classes)]
    evaluation = {"step": steps, "split": "test", "loss": 1.8, "accuracy": accuracy, "macro_f1": accuracy / 2,
                  "examples": 4000, "seconds": 0.6, "confusion": confusion}
    return {"task": "supersense", "model": "bert-tiny", "init_from": "", "strategy": strategy, "codec": "none",
            "device": "cpu", "precision": "fp32", "workers": workers, "steps": steps, "ended": "steps",
            "examples": 32 * steps, "global_batch": 32, "ms_per_iteration": 32e3 / speed, "ms_p50": 32e3 / speed,
            "ms_p95": 40e3 / speed, "compute_ms": 20e3 / speed, "exchange_ms": 10e3 / speed, "data_ms": 2e3 / speed,
            "examples_per_s": speed, "bytes_sent_per_step": 2e6 if workers > 1 else 0, "train_loss": 1.8,
            "train_seconds": 32 * steps / speed, "epochs": [], "eval": evaluation, "run_dir": "",
            "data_hash": "d", "start_hash": f"s{seed}", "test_hash": "t", "cpu": "a processor", "cores": 2,
            "threads": 1, "outside_load": 0.05, "peak_memory": 300_000_000,
            "provenance": {"version": "0.1.0", "commit": "c", "date": "2026-01-01T00:00:00Z", "host": "h",
                           "command": "syncopate train", "seed": seed, "lr": 0.001}}


def make(folder, runs, steps):
    draw = random.Random(1)
    folder.mkdir(parents=True, exist_ok=True)
    sweep = {"format": "syncopate-sweep-1", "title": f"{runs} runs", "file": "many.toml", "state": "finished",
             "program": {"version": "0.1.0", "commit": "c"}, "baseline": "single", "target": None, "differs": [],
             "price": None, "link_gbit": None, "axes": ["comm.workers", "optim.lr"], "runs": [], "tuning": []}
    losses = [[3.8 * 0.995 ** i + draw.uniform(-0.1, 0.1) for i in range(steps)] for _ in range(16)]
    for number in range(runs):
        arm, seed = divmod(number, SEEDS)
        strategy = "single" if arm == 0 else ("ddp", "local-sgd", "diloco", "hogwild", "all-reduce")[arm % 5]
        workers = 1 if arm == 0 else 2 + arm % 7
        lr = round(1e-4 * (1 + arm), 6)
        speed = 1000 * (1 if arm == 0 else draw.uniform(0.6, 0.9) * workers) * draw.uniform(0.97, 1.03)
        accuracy = draw.gauss(0.5 + 0.002 * (arm % 11), 0.01)
        path = folder / f"run{number}"
        path.mkdir(exist_ok=True)
        (path / "spec.json").write_text(json.dumps(spec(strategy, workers, lr, seed), indent=2))
        record = result(strategy, workers, seed, steps, speed, accuracy, draw)
        (path / "result.json").write_text(json.dumps(record) + "\n")  # lists in one line, as the program writes them
        ms = 32e3 / speed
        tail = (f',"compute_ms":{ms * 0.6},"forward_ms":{ms * 0.2},"backward_ms":{ms * 0.3},"optimizer_ms":{ms * 0.1},'
                f'"exchange_ms":{ms * 0.3},"hidden_ms":0.0,"data_ms":0.1,"bytes_sent":2134560.0,"grad_norm":1.05}}\n')
        loss = losses[number % len(losses)]
        (path / "steps.jsonl").write_text("".join(
            f'{{"step":{i + 1},"loss":{loss[i]},"lr":0.001,"examples":32,"ms":{ms}{tail}' for i in range(steps)))
        evaluation = dict(record["eval"])
        (path / "evals.jsonl").write_text("".join(
            json.dumps({**evaluation, "step": steps * k // 4, "accuracy": accuracy * k / 4}, separators=(",", ":")) + "\n"
            for k in range(1, 5)))
        (path / "DONE").touch()
        sweep["runs"].append({"id": f"r{number}", "kind": "row", "arm": f"a{arm}", "row": strategy,
                              "name": f"{strategy}, arm {arm}", "axes": {"comm.workers": str(workers), "optim.lr": str(lr)},
                              "seed": seed, "lr": lr, "control_of": None, "folder": path.name, "state": "done",
                              "reused": False, "exit_code": 0, "message": "", "other_version": False, "alone": True})
    (folder / "sweep.json").write_text(json.dumps(sweep))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--program", default="build/syncopate")
    options = parser.parse_args()
    if not (options.folder / "sweep.json").exists():
        make(options.folder, options.runs, options.steps)
    begin = time.monotonic()
    done = subprocess.run([options.program, "report", str(options.folder)], stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout.splitlines()[-1] if done.stdout else "")
    print(f"{options.runs} runs: {time.monotonic() - begin:.1f} s")
    for name in ("report.html", "results.json", "results.csv", "results.md", "results.xlsx"):
        print(f"{name}: {(options.folder / name).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
