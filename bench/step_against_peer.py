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
import pathlib
import statistics

from harness import (add_peer_options, heading, machine, median_of, parser_for, peer_environment, ratios, report, rounds, row,
                     run_json)

PAIRS = [("ddp", "ddp"), ("all-reduce", "allreduce"), ("gather-scatter", "gather-scatter")]
VARIANTS = {"reducer": ["--mode", "reducer"],
            "ddp, whole last layer": ["--mode", "ddp", "--whole-last-layer"],
            "ddp, whole last layer, dense rows": ["--mode", "ddp", "--whole-last-layer", "--dense-rows"]}


RARE = {"local-sgd": ["--mode", "local-sgd"], "local-sgd-overlapped": ["--mode", "local-sgd", "--overlap-average"],
        "diloco": ["--mode", "diloco"]}


def peer(options, *flags):
    return [options.python, options.peer, "--workers", "2", *flags, "--steps", options.steps]


def pair_row(name, ours, theirs, *more):
    """Our times beside PyTorch's, `more` of our own, then the memory of both."""
    each = ratios(ours, theirs, "ms_per_iteration")
    return row(name, f"{median_of(ours, 'ms_per_iteration'):.0f}", f"{median_of(theirs, 'ms_per_iteration'):.0f}",
               f"{statistics.median(each):.2f}", " ".join(f"{ratio:.2f}" for ratio in each),
               *(f"{median_of(ours, key):.0f}" for key in more), f"{median_of(ours, 'peak_rss_mib'):.0f}",
               f"{median_of(theirs, 'peak_rss_mib'):.0f}")


def footer(options, compute, peer_row, medians="medians"):
    return [f"- {compute}", f"- PyTorch: {peer_row['peer']}; {options.rounds} interleaved rounds of {options.steps} steps, {medians}"]


def compare_models(options, program, environment, compute):
    models = options.models.split(",")
    ours, theirs = ({model: [] for model in models} for _ in range(2))
    for _ in rounds(options.rounds):
        for model in models:
            flags = ["--mode", "ddp", "--model", model, *(["--batch", options.batch] if model.startswith("resnet") else [])]
            ours[model].append(run_json([program, *flags, "--steps", options.steps]))
            theirs[model].append(run_json(peer(options, *flags), environment))
    lines = heading("model", "ours, ms", "PyTorch, ms", "ratio", "of each round", "ours, MiB", "PyTorch, MiB")
    lines += [pair_row(model, ours[model], theirs[model]) for model in models]
    report([*lines, "", *footer(options, compute, theirs[models[0]][0])], options.out)


def compare_rare(options, program, environment, compute):
    names = options.strategies.split(",")
    ours, theirs = {name: [] for name in names}, []
    for _ in rounds(options.rounds):
        theirs.append(run_json(peer(options, "--mode", "local-sgd", "--local-steps", "8"), environment))
        for name in names:
            ours[name].append(run_json([program, *RARE[name], "--every", "8", "--steps", options.steps]))
    lines = heading("strategy, every 8 steps", "ours, ms", "PyTorch's local SGD, ms", "ratio", "of each round", "exposed exchange, ms",
                    "ours, MiB", "PyTorch, MiB")
    lines += [pair_row(name, ours[name], theirs, "exchange_ms") for name in names]
    report([*lines, "", *footer(options, compute, theirs[0], "medians of rounds")], options.out)


def compare_pairs(options, program, environment, compute):
    variants = dict(VARIANTS)
    if "libtorch 1." not in compute:
        del variants["reducer"]  # another interface there
    ours, theirs = {}, {}
    for _ in rounds(options.rounds):
        for name, called in PAIRS:
            ours.setdefault(name, []).append(run_json([program, "--mode", name, "--steps", options.steps]))
            theirs.setdefault(name, []).append(run_json(peer(options, "--mode", called), environment))
        for name, flags in variants.items():
            ours.setdefault(name, []).append(run_json([program, *flags, "--steps", options.steps]))

    lines = heading("what", "ours, ms", "PyTorch, ms", "ratio", "ours, MiB", "PyTorch, MiB", "ratio")
    for name, _ in PAIRS:
        cells = []
        for key in ("ms_per_iteration", "peak_rss_mib"):
            mine, peers = median_of(ours[name], key), median_of(theirs[name], key)
            cells += [f"{mine:.0f}", f"{peers:.0f}", f"{mine / peers:.2f}"]
        lines.append(row(name, *cells))
    lines.append("")
    ddp, peers_ddp = median_of(ours["ddp"], "ms_per_iteration"), median_of(theirs["ddp"], "ms_per_iteration")
    for name in variants:
        ms = median_of(ours[name], "ms_per_iteration")
        lines.append(f"- {name}: {ms:.0f} ms; ddp is {ddp / ms:.2f} of it, it is {ms / peers_ddp:.2f} of PyTorch's ddp")
    lines.append("- where ddp's step goes (ms): " + ", ".join(
        f"{label} {median_of(ours['ddp'], key):.0f}" for label, key in
        [("large matrix products (measured alone)", "products_ms"), ("other layers", "other_ms"),
         ("optimizer", "optimizer_ms"), ("exposed exchange", "exchange_ms")]))
    report([*lines, *footer(options, compute, theirs["ddp"][0])], options.out)


def main():
    parser = parser_for(__doc__)
    add_peer_options(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--models", default="", help="mlm, resnet-18, resnet-8, by commas")
    parser.add_argument("--strategies", default="", help=f"{', '.join(RARE)}, by commas")
    parser.add_argument("--batch", type=int, default=32, help="of the residual networks")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    program = options.build / "bench/step"
    compute, core = machine(program)
    compare = compare_rare if options.strategies else compare_models if options.models else compare_pairs
    compare(options, program, peer_environment(core), compute)


if __name__ == "__main__":
    main()
