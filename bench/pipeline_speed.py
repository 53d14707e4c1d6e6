#!/usr/bin/env python3
"""What compressed activations and a schedule are worth: pipelines in the lab, ratios in one run.

    bench/pipeline_speed.py [--build build] [--rounds 1] [--what link,replicas,worldwide,joint,machine] [--jobs 1] [--out FILE]

link: two stages on one slow link, uncompressed against ac-sgd 4/8. replicas: two stages x two replicas, uncompressed against ac-sgd 4/8
with int8 and int4 gradients. worldwide: eight workers, one in each region, in four stages: random layouts, the one that `plan` chooses, and
that one compressed. joint: what `plan` chooses when shape, micro-batches, placement and bits are all open, against twelve others;
it needs nine cores, so that workers of one thread and the switch do not disturb each other. machine: two stages against ddp on the same
cores, no network. Arms are interleaved over rounds and the medians of steps after the first epoch compared (in the first one ac-sgd
sends examples in full); the first epoch is told apart. The model is bert-mini on supersense (built-in). `--jobs` arms of worldwide run side
by side: nearly all of their time is the network's.
"""
import concurrent.futures
import json
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path

from harness import heading, parser_for, pick, report, result_of, rounds, row, run

EIGHT = ",".join(str(8 * region) for region in range(8))  # a host of each region of worldwide
COMPRESSED = ["--activation-codec", "ac-sgd", "--set", "activation.forward_bits=4", "--set", "activation.backward_bits=8"]
LEAN = ["--activation-codec", "ac-sgd", "--set", "activation.forward_bits=3", "--set", "activation.backward_bits=6"]
MODEL = ["--task", "supersense", "--model", "bert-mini", "--max-length", 64]


class Part:
    """Arms that are compared: name -> flags. The first is the base, or the mean of those whose names begin with `base`."""

    def __init__(self, arms, batch, base="", epoch=4, epochs=4, side_by_side=False):
        self.arms, self.batch, self.base = arms, batch, base or next(iter(arms))
        self.epoch, self.epochs, self.side_by_side = epoch, epochs, side_by_side  # epoch: in steps


def measure(program, part, flags, folder):
    run([program, "train", *MODEL, "--limit", part.epoch * part.batch, "--global-batch", part.batch, "--dropout", 0, "--set",
         "task.test_limit=8", "--eval-every", 10000, "--save-every", 10000, "--set", "comm.timeout=600", "--steps",
         part.epoch * part.epochs, "--out", folder, *flags])
    lines = [json.loads(line) for line in (Path(folder) / "steps.jsonl").read_text().splitlines()]
    result = result_of(folder)
    compute = max((stage["forward_ms"] + stage["backward_ms"] + stage["coding_ms"] for stage in result.get("stages") or []), default=0)
    return {"first": statistics.fmean(line["ms"] for line in lines[1:part.epoch]),
            "later": statistics.median(line["ms"] for line in lines[part.epoch:]), "compute": compute,
            "predicted": (result.get("predicted") or {}).get("ms"), "sent": result["bytes_sent_per_step"]}


def in_words(stages):
    return "/".join(",".join(map(str, stage)) for stage in stages)


def link_part(program, folder):
    link = ["--network", "two-sites", "--hosts", "0,32", "--scale", 150, "--workers", 2, "--stages", 2, "--strategy", "single",
            "--set", "pipeline.micro_batches=4"]
    return Part({"none": link, "ac-sgd 4/8": [*link, *COMPRESSED]}, 16)


def replicas_part(program, folder):
    four = ["--network", "two-sites", "--hosts", "0,1,32,33", "--scale", 150, "--workers", 4, "--stages", 2, "--strategy", "ddp",
            "--set", "pipeline.micro_batches=4", "--set", "pipeline.layout=0,1/2,3"]
    return Part({"none": four, **{f"ac-sgd 4/8, gradients {codec}": [*four, *COMPRESSED, "--codec", codec] for codec in ("int8", "int4")}},
                32, epoch=2)


def machine_part(program, folder):
    return Part({"ddp, 2 workers": ["--workers", 2, "--strategy", "ddp"],
                 "2 stages": ["--workers", 2, "--stages", 2, "--strategy", "single", "--set", "pipeline.micro_batches=4"]}, 32)


def worldwide_part(program, folder):
    cluster = folder / "eight.toml"
    run([program, "network", "show", "worldwide", "--hosts", EIGHT, "--scale", 100, "--out", cluster])
    common = ["--network", cluster, "--workers", 8, "--stages", 4, "--strategy", "ddp", "--set", "pipeline.micro_batches=4", "--threads", 1,
              "--set", "pipeline.schedule=gpipe"]
    arms = {}
    for seed in range(4):
        order = list(range(8))
        random.Random(seed).shuffle(order)
        arms[f"random {seed + 1}"] = [*common, "--set", f"pipeline.layout={in_words([order[k:k + 2] for k in range(0, 8, 2)])}"]
    placement = folder / "eight.placement.json"
    run([program, "plan", "--network", cluster, "--stages", 4, "--replicas", 2, "--micro-batches", 4, *MODEL, "--global-batch", 32, "--bits",
         32, "--out", placement])
    arms["scheduled"] = [*common, "--set", f"pipeline.layout={in_words(json.loads(placement.read_text())['stages'])}"]
    for bits, activations, gradients in (("4/8", COMPRESSED, "int8"), ("4/8", COMPRESSED, "int4"), ("3/6", LEAN, "int4")):
        arms[f"scheduled, ac-sgd {bits}, gradients {gradients}"] = [*arms["scheduled"], *activations, "--codec", gradients]
    return Part(arms, 32, base="random", epoch=2, epochs=3, side_by_side=True)


def joint_part(program, folder):
    cores = os.cpu_count()
    if cores < 9:
        sys.exit("joint needs nine cores: eight workers of one thread and the switch")
    batch = 512
    cluster, profile = folder / "eight.toml", folder / "profile.json"
    run([program, "network", "show", "worldwide", "--hosts", EIGHT, "--scale", 4, "--out", cluster])
    # A device of the plan is this machine, unless the cluster says otherwise; here it is one core of it.
    cluster.write_text("\n".join(f"{line}\nspeed = {1 / cores}" if line.startswith("region") else line
                                 for line in cluster.read_text().splitlines()))
    run([program, "probe", "--no-links", "--workers", 8, "--threads", 1, *MODEL, "--batches", "2,8,32", "--profile", profile])

    def planned(name, *flags):
        path = folder / f"{name}.placement.json"
        run([program, "plan", "--network", cluster, "--profile", profile, "--global-batch", batch, *flags, "--out", path])
        return json.loads(path.read_text()), path

    def arm(placement, *flags, stages=None):
        stages = stages or placement["stages"]
        workers = sum(map(len, stages))
        common = ["--network", cluster, "--workers", workers, "--threads", 1, "--strategy", "ddp" if len(stages[0]) > 1 else "single"]
        if len(stages) == 1:
            return [*common, "--set", f"train.accumulate={placement['micro_batches']}", *flags]
        return [*common, "--stages", len(stages), "--set", f"pipeline.micro_batches={placement['micro_batches']}", "--set",
                "pipeline.schedule=gpipe", "--set", f"pipeline.layout={in_words(stages)}", *flags]

    chosen, path = planned("joint")
    bits = "/".join(f"{chosen['bits'][name]:g}" for name in ("forward", "backward", "gradient"))
    arms = {f"plan: {len(chosen['stages'])} x {len(chosen['stages'][0])}, {bits}": ["--placement", path, "--threads", 1]}
    for stages in (4, 2, 1):
        for bits, activations, gradients in (("32", ["--activation-codec", "none"], "none"), ("16", ["--activation-codec", "fp16"], "fp16"),
                                             ("4/8/8", COMPRESSED, "int8")):
            shape = f"{stages} x {8 // stages}"
            placement, _ = planned(f"{stages}-{bits[0]}", "--stages", stages, "--replicas", 8 // stages, "--bits", bits.replace("/", ","))
            coded = [*(activations if stages > 1 else []), "--codec", gradients]
            arms[f"{shape}, {bits}"] = arm(placement, *coded)
            if bits == "4/8/8" and stages > 1:
                order = [list(range(k, k + 8 // stages)) for k in range(0, 8, 8 // stages)]
                arms[f"{shape}, {bits}, hosts as listed"] = arm(placement, *coded, stages=order)
    alone, _ = planned("alone", "--stages", 1, "--replicas", "auto", "--bits", 32)
    arms["one device"] = arm({**alone, "stages": [[0]]})
    return Part(arms, batch, epoch=2, epochs=3)


PARTS = {"link": link_part, "replicas": replicas_part, "worldwide": worldwide_part, "joint": joint_part, "machine": machine_part}


def measure_all(what, program, part, folder, options):
    seen = {name: [] for name in part.arms}

    def one(item):
        number, (index, (name, flags)) = item
        seen[name].append(measure(program, part, flags, f"{folder}/{number}-{index}"))
        print(f"{what}: {name}: {seen[name][-1]}", file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs if part.side_by_side else 1) as pool:
        for number in rounds(options.rounds):
            list(pool.map(one, [(number, arm) for arm in enumerate(part.arms.items())]))
    return seen


def table(what, part, seen):
    later = {name: statistics.median(run["later"] for run in made) for name, made in seen.items()}
    bases = [name for name in later if name.startswith(part.base)]
    base = statistics.fmean(later[name] for name in bases)
    lines = [f"## {what}", "", *heading("arm", "ms a step", "examples/s", f"against {part.base if len(bases) == 1 else f'the mean of {part.base}'}",
                                        "first epoch, ms", "compute of the busiest stage, ms", "predicted, ms", "sent a step")]
    for name, made in seen.items():
        predicted = [run["predicted"] for run in made if run["predicted"]]
        lines.append(row(name, f"{later[name]:.0f}", f"{1e3 * part.batch / later[name]:.1f}", f"{base / later[name]:.2f}x",
                         f"{statistics.median(run['first'] for run in made):.0f}",
                         f"{statistics.median(run['compute'] for run in made):.0f}",
                         f"{statistics.median(predicted):.0f} ({100 * (statistics.median(predicted) / later[name] - 1):+.0f} %)"
                         if predicted else "",
                         f"{statistics.median(run['sent'] for run in made) / 1e3:.0f} kB"))
    lines.append("")
    if what == "worldwide" and all(run["predicted"] for made in seen.values() for run in made):
        guess = {name: statistics.median(run["predicted"] for run in made) for name, made in seen.items()}
        mean = statistics.fmean(guess[name] for name in bases)
        lines += [f"Gain of the schedule alone: {base / later['scheduled']:.2f}x, predicted {mean / guess['scheduled']:.2f}x.", ""]
    if what == "joint":
        best = min((ms, name) for name, ms in later.items() if name != part.base)
        lines += [f"The plan's choice takes {later[part.base] / best[0]:.3f} of the fastest of the {len(later) - 1} others ({best[1]}).", ""]
    return lines


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--what", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    program = (options.build / "syncopate").resolve()
    lines = []
    for what in pick(options.what, ",", PARTS, "part"):
        with tempfile.TemporaryDirectory() as folder:
            part = PARTS[what](program, Path(folder))
            lines += table(what, part, measure_all(what, program, part, folder, options))
            print("\n".join(lines[-len(part.arms) - 8:]), file=sys.stderr, flush=True)
    report(lines, options.out)


if __name__ == "__main__":
    sys.exit(main())
