#!/usr/bin/env python3
"""Sets Syncopate's training step beside PyTorch's: interleaved runs on this machine, medians, ratios.

    bench/step_against_peer.py [--build build] [--peer ../shared/peers/torch_peer.py] [--rounds 5] [--out report.md]
    bench/step_against_peer.py --models mlm,resnet-18,resnet-8
    bench/step_against_peer.py --strategies local-sgd --steps 24

The peer gets the same threads, OpenBLAS core type and sizes: bert-mini, 30,522 words, batch 8, length 128 without
padding, dropout 0.1 at every place where the peer has it, 2 workers. With --strategies those that talk every eighth step
are compared with the peer's local-sgd, all by the mean over steps (a multiple of 8, please). With --models other models are compared instead,
by ddp: mlm is the same BERT with a decoder at every seventh position; the residual networks get CIFAR's shape, batch 32.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAIRS = [("ddp", "ddp"), ("all-reduce", "allreduce"), ("gather-scatter", "gather-scatter")]
VARIANTS = {"reducer": ["--mode", "reducer"],
            "ddp, whole last layer": ["--mode", "ddp", "--whole-last-layer"],
            "ddp, whole last layer, dense rows": ["--mode", "ddp", "--whole-last-layer", "--dense-rows"]}


RARE = {"local-sgd": ["--mode", "local-sgd"], "local-sgd-overlapped": ["--mode", "local-sgd", "--overlap-average"],
        "diloco": ["--mode", "diloco"]}


def run(command, environment):
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stderr}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def compare_models(options, program, environment, steps, first):
    lines = ["| model | ours, ms | PyTorch, ms | ratio | of each round | ours, MiB | PyTorch, MiB |", "|---|---|---|---|---|---|---|"]
    models = options.models.split(",")
    rows = {model: [] for model in models}
    for round_number in range(options.rounds):
        for model in models:
            sizes = ["--batch", str(options.batch)] if model.startswith("resnet") else []
            ours = run([program, "--mode", "ddp", "--model", model, *sizes, *steps], os.environ)
            theirs = run([options.python, options.peer, "--workers", "2", "--mode", "ddp", "--model", model, *sizes, *steps],
                         environment)
            rows[model].append((ours, theirs))
        print(f"round {round_number + 1} of {options.rounds} done", file=sys.stderr)
    for model in models:
        middle = lambda side, key: statistics.median(pair[side][key] for pair in rows[model])
        ratios = [pair[0]["ms_per_iteration"] / pair[1]["ms_per_iteration"] for pair in rows[model]]
        lines.append("| {} | {:.0f} | {:.0f} | {:.2f} | {} | {:.0f} | {:.0f} |".format(
            model, middle(0, "ms_per_iteration"), middle(1, "ms_per_iteration"), statistics.median(ratios),
            " ".join(f"{ratio:.2f}" for ratio in ratios), middle(0, "peak_rss_mib"), middle(1, "peak_rss_mib")))
    lines += ["", f"- {first['compute']}",
              f"- PyTorch: {rows[models[0]][0][1]['peer']}; {options.rounds} interleaved rounds of {options.steps} steps, medians"]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text)


def compare_rare(options, program, environment, steps, first):
    names = options.strategies.split(",")
    rows = {name: [] for name in names}
    for round_number in range(options.rounds):
        theirs = run([options.python, options.peer, "--workers", "2", "--mode", "local-sgd", "--local-steps", "8", *steps], environment)
        for name in names:
            ours = run([program, *RARE[name], "--every", "8", *steps], os.environ)
            rows[name].append((ours, theirs))
        print(f"round {round_number + 1} of {options.rounds} done", file=sys.stderr)
    lines = ["| strategy, every 8 steps | ours, ms | PyTorch's local SGD, ms | ratio | of each round | exposed exchange, ms | ours, MiB | PyTorch, MiB |",
             "|---|---|---|---|---|---|---|---|"]
    for name in names:
        middle = lambda side, key: statistics.median(pair[side][key] for pair in rows[name])
        ratios = [pair[0]["ms_per_iteration"] / pair[1]["ms_per_iteration"] for pair in rows[name]]
        lines.append("| {} | {:.0f} | {:.0f} | {:.2f} | {} | {:.0f} | {:.0f} | {:.0f} |".format(
            name, middle(0, "ms_per_iteration"), middle(1, "ms_per_iteration"), statistics.median(ratios),
            " ".join(f"{ratio:.2f}" for ratio in ratios), middle(0, "exchange_ms"), middle(0, "peak_rss_mib"),
            middle(1, "peak_rss_mib")))
    lines += ["", f"- {first['compute']}",
              f"- PyTorch: {rows[names[0]][0][1]['peer']}; {options.rounds} interleaved rounds of {options.steps} steps, medians of rounds"]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = pathlib.Path(os.environ.get("SYNCOPATE_SHARED", ROOT.parent / "shared"))
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--peer", default=shared / "peers/torch_peer.py", type=pathlib.Path)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--models", default="", help="mlm, resnet-18, resnet-8, by commas")
    parser.add_argument("--strategies", default="", help=f"{', '.join(RARE)}, by commas")
    parser.add_argument("--batch", type=int, default=32, help="of the residual networks")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    program = options.build / "bench/step"
    steps = ["--steps", str(options.steps)]

    first = run([program, "--mode", "single", "--workers", "1", "--steps", "1"], os.environ)
    core = re.search(r"with (\S+) kernels", first["compute"])
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    if core:
        environment["OPENBLAS_CORETYPE"] = core[1]

    if options.strategies:
        return compare_rare(options, program, environment, steps, first)
    if options.models:
        return compare_models(options, program, environment, steps, first)
    variants = dict(VARIANTS)
    if "libtorch 1." not in first["compute"]:
        del variants["reducer"]  # another interface there
    rows = {}
    for round_number in range(options.rounds):
        for ours, theirs in PAIRS:
            rows.setdefault("ours " + ours, []).append(run([program, "--mode", ours, *steps], os.environ))
            rows.setdefault("peer " + ours, []).append(
                run([options.python, options.peer, "--workers", "2", "--mode", theirs, *steps], environment))
        for name, flags in variants.items():
            rows.setdefault("ours " + name, []).append(run([program, *flags, *steps], os.environ))
        print(f"round {round_number + 1} of {options.rounds} done", file=sys.stderr)

    def middle(name, key):
        return statistics.median(row[key] for row in rows[name])

    lines = ["| what | ours, ms | PyTorch, ms | ratio | ours, MiB | PyTorch, MiB | ratio |", "|---|---|---|---|---|---|---|"]
    for ours, _ in PAIRS:
        a, b = "ours " + ours, "peer " + ours
        lines.append("| {} | {:.0f} | {:.0f} | {:.2f} | {:.0f} | {:.0f} | {:.2f} |".format(
            ours, middle(a, "ms_per_iteration"), middle(b, "ms_per_iteration"),
            middle(a, "ms_per_iteration") / middle(b, "ms_per_iteration"), middle(a, "peak_rss_mib"),
            middle(b, "peak_rss_mib"), middle(a, "peak_rss_mib") / middle(b, "peak_rss_mib")))
    lines.append("")
    ddp, peer = middle("ours ddp", "ms_per_iteration"), middle("peer ddp", "ms_per_iteration")
    for name in variants:
        ms = middle("ours " + name, "ms_per_iteration")
        lines.append(f"- {name}: {ms:.0f} ms; ddp is {ddp / ms:.2f} of it, it is {ms / peer:.2f} of PyTorch's ddp")
    lines.append("- where ddp's step goes (ms): " + ", ".join(
        f"{label} {middle('ours ddp', key):.0f}" for label, key in
        [("large matrix products (measured alone)", "products_ms"), ("other layers", "other_ms"),
         ("optimizer", "optimizer_ms"), ("exposed exchange", "exchange_ms")]))
    lines.append(f"- {first['compute']}")
    lines.append(f"- PyTorch: {rows['peer ddp'][0]['peer']}; {options.rounds} interleaved rounds of {options.steps} steps, medians")
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
