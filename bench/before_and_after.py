#!/usr/bin/env python3
"""Did a change cost speed? bench/step of two builds in interleaved pairs, and the interval of the ratio after / before.

    bench/before_and_after.py --before ../base/build [--build build] [--pairs 11] [--modes ddp,single] [--out report.md]

Which of a pair goes first alternates. The interval holds the median of the ratio with 95 % confidence: it lies between
two of the ordered ratios (the sign test), so it assumes nothing about the noise.
"""
import math
import pathlib
import statistics

from harness import heading, machine, median_of, parser_for, ratios, report, rounds, row, run_json


def interval(values):
    """Ordered values between which the median lies with a probability of 95 % or more."""
    values, count, rank = sorted(values), len(values), 0
    while 2 * sum(math.comb(count, k) for k in range(rank + 1)) / 2**count <= 0.05:
        rank += 1
    rank = max(rank, 1)
    return values[rank - 1], values[count - rank]


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--before", required=True, type=pathlib.Path, help="build folder of the code before the change")
    parser.add_argument("--pairs", default=11, type=int)
    parser.add_argument("--modes", default="ddp,single")
    parser.add_argument("--steps", default=20, type=int)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    programs = {"before": options.before / "bench/step", "after": options.build / "bench/step"}
    modes = options.modes.split(",")
    times = {(mode, side): [] for mode in modes for side in programs}
    for number in rounds(options.pairs):
        for mode in modes:
            for side in sorted(programs, reverse=number % 2 == 0):
                flags = ["--mode", mode, "--workers", 1 if mode == "single" else 2, "--steps", options.steps]
                times[mode, side].append(run_json([programs[side], *flags]))
    lines = heading("mode", "before, ms", "after, ms", "ratio", "95 % interval", "pairs")
    for mode in modes:
        before, after = times[mode, "before"], times[mode, "after"]
        each = ratios(after, before, "ms_per_iteration")
        low, high = interval(each)
        lines.append(row(mode, f"{median_of(before, 'ms_per_iteration'):.1f}", f"{median_of(after, 'ms_per_iteration'):.1f}",
                         f"{statistics.median(each):.3f}", f"{low:.3f} to {high:.3f}", " ".join(f"{r:.3f}" for r in each)))
    report([*lines, "", f"- {machine(programs['after'])[0]}; {options.pairs} interleaved pairs of {options.steps} steps"], options.out)


if __name__ == "__main__":
    main()
