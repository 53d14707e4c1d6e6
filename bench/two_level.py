#!/usr/bin/env python3
"""What does a slow link carry where hosts have several workers? An emulated network of two hosts with a link of --mbit Mbit/s
each way, ddp with --workers on either: over Gloo, whose ring goes through every worker, and in two levels (shm+gloo, what `auto`
takes), where only the first worker of a host talks to the other host. Interleaved, medians over the rounds; beside each what
`syncopate simulate` says, from a profile that `syncopate probe` measures before.

    bench/two_level.py [--build build] [--mbit 100] [--workers 2] [--steps 8] [--rounds 3] [--out report.md]

Bytes are what the emulated link carried while the run trained, as its switch counted them, headers included. Sizes: SST-2,
bert-mini, batch 8 a worker, whole embedding tables (strategy.sparse_rows=false), so that every step's gradient is the model.
"""
import json
import pathlib
import tempfile

from harness import heading, median_of, parser_for, report, result_of, rounds, row, run, run_json, text_tasks, two_hosts

BACKENDS = ["gloo", "shm+gloo"]
TASK = [*text_tasks()["sst2"], "--model", "bert-mini", "--batch-size", 8]


class Bench:
    def __init__(self, options, folder):
        self.program, self.folder, self.steps = options.build / "syncopate", folder, options.steps
        cluster = two_hosts(folder / "two-hosts.toml", options.workers, options.latency_ms, options.mbit / 1e3)
        self.run = [*TASK, "--strategy", "ddp", "--set", "strategy.sparse_rows=false", "--workers", 2 * options.workers, "--network",
                    cluster]
        self.profile = folder / "profile.json"
        run([self.program, "probe", *TASK, "--no-links", "--workers", 1, "--profile", self.profile])

    def train(self, backend, number):
        out = self.folder / f"{backend}-{number}"
        run([self.program, "train", *self.run, "--steps", self.steps, "--backend", backend, "--out", out])
        used = json.loads((out / "env.json").read_text())["backend"]
        assert used == backend, used
        return figures(result_of(out))

    def simulate(self, backend):
        return figures(run_json([self.program, "simulate", *self.run, "--steps", self.steps, "--one-machine", "--profile", self.profile,
                                 "--backend", backend, "--out", self.folder / f"played-{backend}", "--json"]))


def figures(result):
    """MB over the link from the second host to the first: the other way rank 0's parameters go at the start, too."""
    carried = {(link["from"], link["to"]): link["bytes"] for link in result["network"]["links"]}
    return {"link": carried[1, 0] / 1e6, "ms": result["ms_per_iteration"], "exchange": result["exchange_ms"],
            "sent": result["bytes_sent_per_step"] / 1e6}


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--mbit", type=float, default=100)
    parser.add_argument("--latency-ms", type=float, default=1)
    parser.add_argument("--workers", type=int, default=2, help="on each host")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    measured = {backend: [] for backend in BACKENDS}
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(options, pathlib.Path(place))
        for number in rounds(options.rounds):
            for backend in BACKENDS:
                measured[backend].append(bench.train(backend, number))
        played = {backend: bench.simulate(backend) for backend in BACKENDS}

    ranks = 2 * options.workers
    gradient = median_of(measured["gloo"], "sent") / (2 * (ranks - 1) / ranks)  # records count a ring
    lines = heading(f"2 hosts x {options.workers} workers, {options.mbit:g} Mbit/s", "MB over the link a step", "times the gradient",
                    "MB simulated", "ms a step", "simulated", "exposed exchange, ms", "simulated", "MB a worker sends, as recorded")
    for backend in BACKENDS:
        rows, said = measured[backend], played[backend]
        link = median_of(rows, "link")
        lines.append(row(backend, f"**{link:.2f}**", f"{link / gradient:.3f}", f"{said['link']:.2f}", f"{median_of(rows, 'ms'):.0f}",
                         f"{said['ms']:.0f}", f"{median_of(rows, 'exchange'):.0f}", f"{said['exchange']:.0f}",
                         f"{median_of(rows, 'sent'):.2f}"))
    spread = {backend: [f"{each['link']:.2f}" for each in measured[backend]] for backend in BACKENDS}
    lines += ["", f"- the gradient is {gradient:.2f} MB; {options.rounds} interleaved rounds of {options.steps} steps, medians",
              "- MB over the link of each round: " + "; ".join(f"{backend} {' '.join(spread[backend])}" for backend in BACKENDS)]
    report(lines, options.out)


if __name__ == "__main__":
    main()
