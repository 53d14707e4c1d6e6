#!/usr/bin/env python3
"""Training over MPI: the same bits as over shared memory whatever the strategy, and faults that are named in time.

    bench/mpi.py [--build build] [--out report.md] [--transport tcp]

Needs Open MPI's mpirun. Every check that fails is in the table and makes the exit code 1.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from faults import processes_of, write_data
from harness import heading, parser_for, report, row

RANKS = 3
VARIANTS = {
    "ddp": [],
    "ddp, dropout 0.1, 2 micro-batches": ["--dropout", "0.1", "--accumulate", "2"],
    "all-reduce": ["--strategy", "all-reduce"],
    "gather-scatter": ["--strategy", "gather-scatter"],
    **{f"ddp, {codec}": ["--codec", codec] for codec in ("fp16", "bf16", "int8", "int4", "top-k", "random-k")},
    "ddp, power-sgd": ["--codec", "power-sgd", "--set", "codec.warmup=3", "--set", "codec.rank=1"],
    "ddp, one-bit": ["--codec", "one-bit", "--set", "codec.warmup=3"],
    "local-sgd": ["--strategy", "local-sgd", "--set", "strategy.every=4"],
    "diloco": ["--strategy", "diloco", "--set", "strategy.every=4"],
    "parameter-server in lockstep, 2 workers and a server": ["--strategy", "parameter-server", "--set", "strategy.staleness=0"],
    "2 stages of 2 replicas": ["--stages", "2"],
    "2 stages of 2 replicas, ac-sgd": ["--stages", "2", "--activation-codec", "ac-sgd"],
}
STEPS = 24
RESUMED_STEPS = 600
FAULTS = [(rank, phase, kind) for kind in ("kill", "stop", "leave") for rank, phase in
          ((0, "forward"), (1, "backward"), (0, "exchange"), (2, "exchange"), (2, "evaluation"), (1, "checkpoint"))]
SAID = {"kill": r"syncopate: rank {rank} died during {phase} of step 4", "stop": r"note: rank {rank} has not answered .* {phase} of step 4",
        "leave": r"syncopate: .*rank {rank} left while"}
TIMEOUT_S = 6  # of the run's own: what is stopped is given up after it


class Bench:
    def __init__(self, folder, build, transport):
        self.folder, self.program = folder, Path(build).resolve() / "syncopate"
        self.mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", *(["--mca", "btl", f"{transport},self"] if transport else []), "-n"]
        (folder / "data").mkdir()
        write_data(folder / "data")

    def words(self, name, more):
        return [self.program, "train", "--task", "sst2", "--data", self.folder / "data", "--model", "bert-tiny", "--global-batch", "12",
                "--max-length", "16", "--strategy", "ddp", "--lr", "1e-3", "--threads", "1", "--steps", STEPS, "--out", self.folder / name, *more]

    def run(self, name, launcher, more):
        done = subprocess.run(list(map(str, [*launcher, *self.words(name, more)])), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{name} failed:\n{done.stderr}")

    def over_mpi(self, name, more, ranks=RANKS):
        self.run(name, [*self.mpirun, ranks], ["--backend", "mpi", *more])

    def over_memory(self, name, more, ranks=RANKS):
        self.run(name, [], ["--backend", "shm", "--workers", ranks, *more])

    def bits(self, name):
        return (self.folder / name / "model/model.safetensors").read_bytes(), (self.folder / name / "loss_0.txt").read_bytes()

    def losses(self, name):
        return [json.loads(line)["loss"] for line in (self.folder / name / "steps.jsonl").read_text().splitlines()]

    def worker(self, name, rank):
        """The process of a rank, once it is there."""
        for pid in processes_of(self.folder / name):
            with contextlib.suppress(OSError):
                if f"OMPI_COMM_WORLD_RANK={rank}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                    return pid
        return None

    def resumed(self):
        """One worker gets SIGTERM, which stops all; then resumed."""
        words = list(map(str, [*self.mpirun, RANKS, *self.words("resumed", ["--backend", "mpi", "--steps", RESUMED_STEPS])]))
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path = self.folder / "resumed/steps.jsonl"
        while not (path.exists() and path.read_text().count("\n") > 20):
            time.sleep(0.02)
            if process.poll() is not None:
                sys.exit("ended before it was stopped")
        os.kill(self.worker("resumed", 1), signal.SIGTERM)
        process.wait()
        stopped = len(self.losses("resumed"))
        if stopped >= RESUMED_STEPS:
            sys.exit("was not stopped")
        self.over_mpi("resumed", ["--steps", RESUMED_STEPS, "--resume"])
        self.over_memory("straight", ["--steps", RESUMED_STEPS])
        return stopped, self.bits("resumed") == self.bits("straight")

    def fault(self, rank, phase, kind):
        """Seconds from the fault to the sentence that names the rank, and to the end of mpirun; what was said."""
        name = f"fault-{rank}-{phase}-{kind}"
        command = [*self.mpirun, RANKS, *self.words(name, ["--backend", "mpi", "--steps", "100000", "--timeout", TIMEOUT_S if kind == "stop" else 30, "--eval-every", "4",
                                                           "--save-every", "4", "--set", f"comm.fault={rank}:4:{phase}:{kind}"])]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        faulted, said, sentence = None, None, ""

        def watch():  # the moment at which the victim is stopped or gone
            nonlocal faulted
            pid = None
            while faulted is None and process.poll() is None:
                pid = pid or self.worker(name, rank)
                if pid:
                    try:
                        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
                    except FileNotFoundError:
                        state = "Z"
                    if state in "ZTX":
                        faulted = time.monotonic()
                time.sleep(0.01)

        victim = threading.Thread(target=watch)
        victim.start()
        wanted = re.compile(SAID[kind].format(rank=rank, phase=phase))
        for line in process.stderr:
            if kind == "leave" and f"rank {rank} leaves" in line:
                faulted = time.monotonic()
            if said is None and wanted.search(line):
                said, sentence = time.monotonic(), line.strip()
        process.wait()
        over = time.monotonic()
        victim.join()
        right = said is not None and not processes_of(self.folder / name)
        start = faulted or said or over
        return right, (said or over) - start, over - start, sentence


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--transport", default="", help="Open MPI's btl: tcp, vader (default: its own choice)")
    arguments = parser.parse_args()
    wrong = 0
    lines = ["# Training over MPI", "",
             f"`bench/mpi.py{' --transport ' + arguments.transport if arguments.transport else ''}`: bert-tiny, {RANKS} ranks under Open MPI's mpirun on one machine.", ""]
    before = sorted(os.listdir("/dev/shm"))
    with tempfile.TemporaryDirectory(prefix="syncopate-mpi-") as name:
        bench = Bench(Path(name), arguments.build, arguments.transport)
        lines += heading("against shared memory", f"model and losses after {STEPS} steps")
        for number, (what, more) in enumerate(VARIANTS.items()):
            servers, ranks = "parameter-server" in more, 4 if "--stages" in more else RANKS
            bench.over_mpi(f"mpi{number}", more, ranks)
            bench.over_memory(f"shm{number}", more, ranks - servers)
            same = bench.bits(f"mpi{number}") == bench.bits(f"shm{number}")
            wrong += not same
            lines.append(row(what, "same bits" if same else "**other bits**"))
            print(lines[-1], file=sys.stderr, flush=True)
        foil = bench.bits("mpi0") == bench.bits("mpi1")
        stopped, same = bench.resumed()
        wrong += foil + (not same)
        lines += [row(f"ddp, SIGTERM after {stopped} of {RESUMED_STEPS} steps, `--resume`", "same bits" if same else "**other bits**"), ""]
        bench.run("one", [], ["--strategy", "single", "--dropout", "0"])
        reference = bench.losses("one")
        lines += heading("n ranks of 12 / n against one of 12, dropout 0", "largest difference of a step's loss")
        for ranks in (2, 3, 4):
            bench.over_mpi(f"law{ranks}", ["--dropout", "0"], ranks)
            apart = max(abs(a - b) for a, b in zip(reference, bench.losses(f"law{ranks}")))
            wrong += apart > 2e-6
            lines.append(row(f"n = {ranks}", f"{apart:.1e}"))
        lines += ["", f"Faults; seconds from the fault. Who is stopped is given up after `--timeout {TIMEOUT_S}`:", "", *heading("fault", "until it is named", "until mpirun has ended", "said")]
        for rank, phase, kind in FAULTS:
            right, named, over, sentence = bench.fault(rank, phase, kind)
            wrong += not right
            lines.append(row(f"{kind} of rank {rank} in {phase}", f"{max(0, named):.1f}", f"{over:.1f}", sentence if right else f"**{sentence}**"))
            print(lines[-1], file=sys.stderr, flush=True)
    left = sorted(set(os.listdir("/dev/shm")) - set(before))
    wrong += len(left)
    lines += ["", f"Left in /dev/shm: {', '.join(left) or 'nothing'}."]
    report(lines, arguments.out)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
