#!/usr/bin/env python3
"""What is bf16 worth on this CPU? Steps of one worker in fp32 and in bf16, in turns, and the ratio of their times.

    bench/cpu_bf16.py [--build build] [--rounds 5] [--steps 15] [--threads 1,16] [--sets bert-mini:8,bert-base:8] [--out report.md]

Length 128, dropout 0.1, AdamW, random tokens. Where a CPU lacks AVX512-BF16 and AMX, or products in bf16 are slower
there, the program stays in fp32 and the script says so.
"""
import pathlib
import statistics
import sys

from harness import heading, machine, median_of, parser_for, ratios, report, rounds, row, run_json


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--steps", default=15, type=int)
    parser.add_argument("--threads", default="1,16")
    parser.add_argument("--sets", default="bert-mini:8,bert-base:8,bert-base:32", help="models with their batches")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    step = options.build / "bench/step"
    sets = [(*each.split(":"), threads) for each in options.sets.split(",") for threads in options.threads.split(",")]
    found = {(each, precision): [] for each in sets for precision in ("fp32", "bf16")}
    for number in rounds(options.rounds):
        for each in sets:
            model, batch, threads = each
            for precision in sorted(("fp32", "bf16"), reverse=number % 2 == 0):
                result = run_json([step, "--mode", "single", "--workers", 1, "--model", model, "--batch", batch, "--threads", threads,
                                   "--steps", options.steps, "--precision", precision])
                if result["precision"] != precision:
                    sys.exit(f"this CPU computes in {result['precision']}: products in {precision} are not faster here")
                found[each, precision].append(result)
    lines = heading("model", "batch", "threads", "fp32, ms", "bf16, ms", "bf16 / fp32", "rounds",
                    "products of the step alone, fp32 and bf16, ms", "optimizer, ms")
    for each in sets:
        whole, half = found[each, "fp32"], found[each, "bf16"]
        shares = ratios(half, whole, "ms_per_iteration")
        lines.append(row(*each, f"{median_of(whole, 'ms_per_iteration'):.1f}", f"{median_of(half, 'ms_per_iteration'):.1f}",
                         f"**{statistics.median(shares):.2f}**", " ".join(f"{r:.2f}" for r in shares),
                         f"{median_of(whole, 'products_ms'):.1f}, {median_of(half, 'products_ms'):.1f}",
                         f"{median_of(half, 'optimizer_ms'):.1f}"))
    report([*lines, "", f"- {machine(step)[0]}; {options.rounds} interleaved rounds of {options.steps} steps"], options.out)


if __name__ == "__main__":
    main()
