#!/usr/bin/env python3
"""What compressed activations and a schedule are worth: pipelines in the lab, ratios in one run.

    bench/pipeline_speed.py [--build build] [--rounds 1] [--what link,replicas,worldwide,machine] [--out FILE]

link: two stages on one slow link, uncompressed against ac-sgd 4/8. replicas: two stages x two replicas, uncompressed against ac-sgd 4/8
with int8 gradients. worldwide: eight workers, one in each region, in four stages: random layouts, the one that `plan` chooses, and
that one compressed. machine: two stages against ddp on the same cores, no network. Arms are interleaved over rounds and the medians of
steps after the first epoch compared (in the first one ac-sgd sends examples in full); the first epoch is told apart. The model is
bert-mini on supersense (built-in).
"""
import json
import random
import statistics
import sys
import tempfile
from pathlib import Path

from harness import heading, parser_for, pick, report, result_of, rounds, row, run

EPOCH = 4  # steps
COMPRESSED = ["--activation-codec", "ac-sgd", "--set", "activation.forward_bits=4", "--set", "activation.backward_bits=8"]


def task_flags(batch):
    return ["--task", "supersense", "--model", "bert-mini", "--max-length", 64, "--limit", EPOCH * batch, "--global-batch", batch,
            "--dropout", 0, "--set", "task.test_limit=8", "--eval-every", 10000]


def steps_of(program, flags, batch, folder, epochs=4):
    run([program, "train", *task_flags(batch), "--steps", EPOCH * epochs, "--out", folder, *flags])
    lines = [json.loads(line) for line in (Path(folder) / "steps.jsonl").read_text().splitlines()]
    result = result_of(folder)
    compute = max((stage["forward_ms"] + stage["backward_ms"] + stage["coding_ms"] for stage in result.get("stages") or []), default=0)
    return {"first": statistics.fmean(line["ms"] for line in lines[1:EPOCH]),
            "later": statistics.median(line["ms"] for line in lines[EPOCH:]), "compute": compute,
            "predicted": (result.get("predicted") or {}).get("ms"), "sent": result["bytes_sent_per_step"]}


def arms_of(what, program, folder):
    """name -> flags, the first is the base; and the examples of a step."""
    if what == "link":
        link = ["--network", "two-sites", "--hosts", "0,32", "--scale", 150, "--workers", 2, "--stages", 2, "--strategy", "single",
                "--set", "pipeline.micro_batches=4"]
        return {"none": link, "ac-sgd 4/8": [*link, *COMPRESSED]}, 16
    if what == "replicas":
        four = ["--network", "two-sites", "--hosts", "0,1,32,33", "--scale", 150, "--workers", 4, "--stages", 2, "--strategy", "ddp",
                "--set", "pipeline.micro_batches=4", "--set", "pipeline.layout=0,1/2,3"]
        return {"none": four, "ac-sgd 4/8, gradients int8": [*four, *COMPRESSED, "--codec", "int8"]}, 32
    if what == "machine":
        return {"ddp, 2 workers": ["--workers", 2, "--strategy", "ddp"],
                "2 stages": ["--workers", 2, "--stages", 2, "--strategy", "single", "--set", "pipeline.micro_batches=4"]}, 32
    cluster = Path(folder) / "eight.toml"
    cluster.write_text(run([program, "network", "show", "worldwide", "--hosts", ",".join(str(8 * i) for i in range(8)), "--scale", 20]))
    common = ["--network", cluster, "--workers", 8, "--stages", 4, "--strategy", "ddp", "--set", "pipeline.micro_batches=4"]
    arms = {}
    for seed in range(4):
        order = list(range(8))
        random.Random(seed).shuffle(order)
        layout = "/".join(f"{order[2 * stage]},{order[2 * stage + 1]}" for stage in range(4))
        arms[f"random {seed + 1}"] = [*common, "--set", f"pipeline.layout={layout}"]
    placement = Path(folder) / "eight.placement.json"
    run([program, "plan", "--network", cluster, "--stages", 4, "--replicas", 2, "--micro-batches", 4, "--task", "supersense", "--model",
         "bert-mini", "--max-length", 64, "--global-batch", 32, "--bits", 32, "--out", placement])
    planned = json.loads(placement.read_text())
    layout = "/".join(",".join(map(str, stage)) for stage in planned["stages"])
    arms["scheduled"] = [*common, "--set", f"pipeline.layout={layout}"]
    arms["scheduled, ac-sgd 4/8, gradients int8"] = [*arms["scheduled"], *COMPRESSED, "--codec", "int8"]
    return arms, 32


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--what", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    program = (options.build / "syncopate").resolve()
    lines = []
    for what in pick(options.what, ",", ["link", "replicas", "worldwide", "machine"], "part"):
        with tempfile.TemporaryDirectory() as folder:
            arms, batch = arms_of(what, program, folder)
            seen = {name: [] for name in arms}
            for number in rounds(options.rounds):
                for name, flags in arms.items():
                    seen[name].append(steps_of(program, flags, batch, f"{folder}/{number}-{len(name)}-{name[:12].replace(' ', '').replace('/', '')}"))
                    print(f"{what}: {name}: {seen[name][-1]}", file=sys.stderr, flush=True)
        later = {name: statistics.median(run["later"] for run in made) for name, made in seen.items()}
        random_layouts = [ms for name, ms in later.items() if name.startswith("random")]
        base = statistics.fmean(random_layouts) if random_layouts else next(iter(later.values()))
        lines += [f"## {what}", "", *heading("arm", "ms a step", "examples/s", "against " + ("the mean of random layouts" if random_layouts
                  else next(iter(later))), "first epoch, ms", "compute of the busiest stage, ms", "predicted, ms", "sent a step")]
        for name, made in seen.items():
            predicted = [run["predicted"] for run in made if run["predicted"]]
            lines.append(row(name, f"{later[name]:.0f}", f"{1e3 * batch / later[name]:.1f}", f"{base / later[name]:.2f}x",
                             f"{statistics.median(run['first'] for run in made):.0f}",
                             f"{statistics.median(run['compute'] for run in made):.0f}",
                             f"{statistics.median(predicted):.0f}" if predicted else "",
                             f"{statistics.median(run['sent'] for run in made) / 1e3:.0f} kB"))
        lines.append("")
    report(lines, options.out)


if __name__ == "__main__":
    sys.exit(main())
