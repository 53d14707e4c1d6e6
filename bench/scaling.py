#!/usr/bin/env python3
"""What does a step cost with more workers on one machine? Strategies beside workers that do not exchange at all, which is what
this machine's cores and memory leave of one worker's speed; and beside PyTorch, where asked for.

    bench/scaling.py [--workers 1,8,16] [--modes none,ddp] [--peers all-reduce:8,gather-scatter:8] [--rounds 3] [--steps 20]
                     [--warmup 20] [--precision fp32] [--out report.md]

bert-mini, batch 8 a worker, length 128, one thread each, interleaved rounds. `none` is local-sgd that never averages,
`ddp-apart` ddp whose workers each make the whole update.
"exchange" is what the worker that waits most waits in a step, for the others too; "of the last" what the one that comes last in a
step waits: the exchange itself. "slowest's own" is what the slowest of a step does besides: no exchange makes that shorter. "CPU" is
the time of all threads of the worker that spends most in a step.
"""
import os
import pathlib
import statistics

from harness import add_peer_options, heading, machine, median_of, parser_for, peer_environment, ratios, report, rounds, row, run_json

FLAGS = {"none": ["--mode", "local-sgd", "--every", "1000000"],
         "ddp-apart": ["--mode", "ddp", "--set", "strategy.share_update=false"]}


def main():
    parser = parser_for(__doc__)
    add_peer_options(parser)
    parser.add_argument("--workers", default="1,8,16")
    parser.add_argument("--modes", default="none,ddp")
    parser.add_argument("--peers", default="", help="modes with numbers of workers that PyTorch runs too")
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--steps", default=20, type=int)
    parser.add_argument("--warmup", default=20, type=int)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    if options.peers and options.precision != "fp32":
        parser.error("PyTorch's script computes in fp32: give --peers with --precision fp32")
    step = options.build / "bench/step"
    compute, core = machine(step)
    counts = [int(count) for count in options.workers.split(",")]
    peers = [each.split(":") for each in options.peers.split(",") if each]
    ours = [(mode, count) for mode in options.modes.split(",") for count in counts] + [(m, int(c)) for m, c in peers]
    ours = list(dict.fromkeys(ours))
    found = {each: [] for each in ours}
    theirs = {(mode, int(count)): [] for mode, count in peers}
    for _ in rounds(options.rounds):
        for mode, count in ours:
            flags = FLAGS.get(mode, ["--mode", mode])
            found[mode, count].append(run_json([step, *flags, "--workers", count, "--steps", options.steps, "--warmup",
                                                options.warmup, "--precision", options.precision]))
        for mode, count in theirs:
            command = [options.python, options.peer, "--mode", mode.replace("all-reduce", "allreduce"), "--workers", count, "--steps",
                       options.steps, "--warmup", options.warmup]
            theirs[mode, count].append(run_json(command, peer_environment(core)))
    alone = next((found[each] for each in ours if each[1] == 1), None)
    lines = heading("mode", "workers", "ms a step", "rounds", "times one worker's", "exchange, ms", "of the last, ms",
                    "slowest's own, ms", "CPU, ms", "products alone, ms", "optimizer, ms", "PyTorch, ms", "ours / PyTorch")
    for each in ours:
        made, key = found[each], "ms_per_iteration"
        peer = theirs.get(each)
        lines.append(row(*each, f"{median_of(made, key):.0f}", " ".join(f"{one[key]:.0f}" for one in made),
                         f"{statistics.median(ratios(made, alone, key)):.2f}" if alone else "",
                         f"{median_of(made, 'exchange_ms'):.1f}", f"{median_of(made, 'exchange_of_the_last_ms'):.1f}",
                         f"{median_of(made, 'slowest_own_ms'):.0f}", f"{median_of(made, 'cpu_ms'):.0f}",
                         f"{median_of(made, 'products_ms'):.0f}", f"{median_of(made, 'optimizer_ms'):.1f}",
                         f"{median_of(peer, key):.0f}" if peer else "",
                         f"**{statistics.median(ratios(made, peer, key)):.2f}**" if peer else ""))
    report([*lines, "", f"- {compute}; {os.cpu_count()} processors; {options.rounds} interleaved rounds of {options.steps} steps after "
            f"{options.warmup}"],
           options.out)


if __name__ == "__main__":
    main()
