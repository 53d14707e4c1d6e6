#!/usr/bin/env python3
"""Two questions about workers that do not wait for each other, on one machine with a core for each:

1. How many more examples a second do two hogwild processes train on than one?
2. What does a worker that is four times slower cost the others, in step (ddp) and free (parameter-server, hogwild)?

    bench/asynchronous.py [--build build] [--rounds 5] [--steps 150]

Runs are interleaved and medians are reported. supersense (built-in), bert-tiny, one thread per worker.
"""
import statistics
import tempfile

from harness import heading, median_of, parser_for, ratios, report, result_of, row, run

KINDS = {
    "hogwild, 1 process": "--strategy hogwild --workers 1",
    "hogwild, 2 processes": "--strategy hogwild --workers 2",
    "hogwild, 2, one 4x slower": "--strategy hogwild --workers 2 --set comm.slow=1:4",
    "parameter-server, 1 worker": "--strategy parameter-server --workers 1",
    "parameter-server, 2 workers": "--strategy parameter-server --workers 2",
    "parameter-server, 2, one 4x slower": "--strategy parameter-server --workers 2 --set comm.slow=1:4",
    "ddp, 2 workers": "--strategy ddp --workers 2",
    "ddp, 2, one 4x slower": "--strategy ddp --workers 2 --set comm.slow=1:4",
}


def measure(program, flags, options, folder):
    workers = int(flags.split("--workers ")[1].split()[0])
    command = [program, "train", "--task", "supersense", "--limit", "6000", "--set", "task.test_limit=50", "--model",
               "bert-tiny", "--batch-size", str(options.batch), "--max-length", "128", "--steps",
               str(options.steps * (2 if workers == 1 else 1)), "--eval-every", "1000000", "--threads", "1", "--out", folder]
    run(command + flags.split())
    result = result_of(folder)
    first = result["updates"][0] * options.batch / result["train_seconds"] if "updates" in result else \
        result["examples_per_s"] / workers
    return {"all": result["examples_per_s"], "first": first}


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    program = (options.build / "syncopate").resolve()
    seen = {kind: [] for kind in KINDS}
    for _ in range(options.rounds):
        for kind, flags in KINDS.items():
            with tempfile.TemporaryDirectory() as folder:
                seen[kind].append(measure(program, flags, options, folder + "/run"))

    lines = heading("what", "examples/s, all workers", "of the first worker")
    for kind, runs in seen.items():
        lines.append(row(kind, f"{median_of(runs, 'all'):.0f}", f"{median_of(runs, 'first'):.0f}"))

    def ratio(one, other, name="all"):
        return f"{statistics.median(ratios(seen[one], seen[other], name)):.2f}"

    lines += ["", f"- two hogwild processes train {ratio('hogwild, 2 processes', 'hogwild, 1 process')} times as many examples a "
              "second as one"]
    for kind in ("hogwild", "parameter-server", "ddp"):
        several = "2 processes" if kind == "hogwild" else "2 workers"
        lines.append(f"- {kind}: beside a worker that is 4x slower the first keeps "
                     f"{ratio(f'{kind}, 2, one 4x slower', f'{kind}, {several}', 'first')} of its own pace, all together "
                     f"{ratio(f'{kind}, 2, one 4x slower', f'{kind}, {several}')}")
    report(lines)


if __name__ == "__main__":
    main()
