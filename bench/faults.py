#!/usr/bin/env python3
"""A storm of faults: runs are killed, frozen, left, hung up and terminated at random moments, and must end well every time.

    bench/faults.py [--build build] [--faults 300] [--seed 1] [--jobs 1] [--backend shm] [--device cpu] [--out report.md]

Every fault takes a strategy and a codec, two to four workers, one of kill -9, SIGSTOP, SIGHUP, SIGTERM and a worker that
leaves (says goodbye in the middle of an exchange), a victim (a worker or, for SIGHUP and SIGTERM, also the launcher) and a
moment between the start and the end of a run. Checked each time: no hang; no process left, nothing left in /dev/shm; the exit
code (4 with the victim named, or 130 after a checkpoint; with --backend mpi, mpirun's own); whatever was saved resumes with
the same command and comes to its end, with every step once on record. Timed each time: from the fault until the victim is named.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from harness import parser_for, report

STRATEGIES = ["ddp", "all-reduce", "gather-scatter", "local-sgd", "diloco", "hogwild", "parameter-server", "data-parallel"]
CODED = {"ddp", "all-reduce", "local-sgd", "diloco", "data-parallel"}
CODECS = ["none", "none", "fp16", "int8", "top-k", "power-sgd"]
SIGNALS = {"kill -9": signal.SIGKILL, "SIGSTOP": signal.SIGSTOP, "SIGHUP": signal.SIGHUP, "SIGTERM": signal.SIGTERM}
LEAVES = "leaves"
LOCKSTEP = ["ddp", "all-reduce", "gather-scatter"]  # where a worker is in an exchange at every step
STEPS = 250
TIMEOUT_S = 5  # of the run's own: what is frozen is given up after it
PATIENCE_S = 60  # of ours, on a busy machine


def write_data(folder):
    """Sentences of two classes in SST-2's form."""
    words = {0: ["dull", "slow", "poor", "flat"], 1: ["bright", "warm", "fine", "sharp"]}
    draw = random.Random(7)
    for name, count in (("train.tsv", 200), ("dev.tsv", 20)):
        lines = ["sentence\tlabel"]
        for index in range(count):
            label = index % 2
            lines.append(f"a {draw.choice(words[label])} film number {draw.randrange(50)}\t{label}")
        (folder / name).write_text("\n".join(lines) + "\n")


def files_in_dev_shm():
    return set(os.listdir("/dev/shm"))


def processes_of(folder):
    """Process numbers whose command line holds the folder, and their rank: -1 for the launcher, or for a run without one."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if str(folder) not in (entry / "cmdline").read_bytes().decode(errors="replace"):
                continue
            if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                continue
            variables = (entry / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
        ranks = [int(v.split(b"=")[1]) for v in variables if v.startswith((b"SYNCOPATE_RANK=", b"OMPI_COMM_WORLD_RANK="))]
        found[int(entry.name)] = ranks[0] if ranks else -1
    return found


class Fault:
    def __init__(self, number, arguments, program, root):
        draw = random.Random(arguments.seed * 100_003 + number)
        self.number, self.program, self.folder = number, program, root / f"run-{number}"
        self.backend, self.device = arguments.backend, arguments.device
        self.by_mpirun = self.backend == "mpi"
        self.name = draw.choice([*SIGNALS, LEAVES])
        strategies = LOCKSTEP if self.name == LEAVES else STRATEGIES
        self.strategy = draw.choice([s for s in strategies if not (self.by_mpirun and s == "data-parallel")])
        self.codec = draw.choice(CODECS) if self.strategy in CODED and self.name != LEAVES else "none"
        self.workers = draw.randint(2, 4)
        self.to_launcher = SIGNALS.get(self.name) in (signal.SIGHUP, signal.SIGTERM) and draw.random() < 0.5
        self.leaver, self.leaves_at = draw.randrange(self.workers), draw.randrange(3, STEPS - 10)
        self.after_start = draw.random() < 0.85  # else while it still starts
        self.delay = draw.uniform(0, 1.5)
        self.choice = draw.random()
        self.data = root / "data"

    def command(self, *more):
        settings = {"local-sgd": ["--set", "strategy.every=100"], "diloco": ["--set", "strategy.every=50"]}
        servers = ["--set", "strategy.servers=1"] if self.strategy == "parameter-server" else []
        codec = ["--codec", self.codec] if self.strategy in CODED else []
        processes = self.workers + (1 if servers else 0)
        launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", processes] if self.by_mpirun else []
        backend = [] if self.strategy == "data-parallel" else ["--backend", self.backend]
        return [*launcher, self.program, "train", "--task", "sst2", "--data", self.data, "--model", "bert-tiny",
                "--max-length", "16", "--strategy", self.strategy, *([] if self.by_mpirun else ["--workers", self.workers]),
                *settings.get(self.strategy, []), *servers, *codec, *backend, "--device", self.device,
                "--steps", STEPS, "--global-batch", "12", "--threads", "1", "--timeout", TIMEOUT_S, "--save-every", "40",
                "--eval-every", "100", "--out", self.folder, *more]

    def title(self):
        return (f"{self.number}: {self.strategy}, {self.codec}, {self.workers} workers, {self.name} to "
                f"{'the launcher' if self.to_launcher else 'a worker'}")

    def start(self, *more):
        log = open(f"{self.folder}.log", "a")
        return subprocess.Popen(list(map(str, self.command(*more))), stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def said(self):
        return pathlib.Path(f"{self.folder}.log").read_text(errors="replace")

    def names(self, rank):
        """Whether a sentence of ours names the rank: a note of its silence, or why the run ended."""
        return re.search(rf"^(syncopate|note): .*\brank {rank}\b(?! leaves)", self.said(), re.MULTILINE) is not None

    def wait_until_named(self, run, rank, since):
        """Seconds until the rank was named; none where it was not."""
        while time.monotonic() < since + PATIENCE_S:
            over = run.poll() is not None
            if self.names(rank):
                return time.monotonic() - since
            if over:
                return None
            time.sleep(0.01)
        return None

    def wait_for_moment(self, run):
        deadline = time.monotonic() + PATIENCE_S
        while self.after_start and run.poll() is None and time.monotonic() < deadline:
            losses = self.folder / "loss_0.txt"
            if losses.exists() and losses.stat().st_size > 0:
                break
            time.sleep(0.01)
        time.sleep(self.delay)

    def victim(self, run):
        alive = processes_of(self.folder)
        workers = sorted((rank, pid) for pid, rank in alive.items() if rank >= 0)
        if self.to_launcher or not workers:
            return run.pid, -1
        rank, pid = workers[int(self.choice * len(workers))]
        return pid, rank

    def wait_for_leaving(self, run):
        deadline = time.monotonic() + PATIENCE_S
        while run.poll() is None and f"rank {self.leaver} leaves" not in self.said() and time.monotonic() < deadline:
            time.sleep(0.01)

    def carry_out(self):
        """What went wrong, or nothing; and what the run did."""
        self.named_after = None
        if self.name == LEAVES:
            run = self.start("--set", f"comm.fault={self.leaver}:{self.leaves_at}:exchange:leave")
            self.stepped = True
            self.wait_for_leaving(run)
            return self.check_end(run, self.leaver, False, LEAVES, time.monotonic())
        run = self.start()
        self.wait_for_moment(run)
        pid, rank = self.victim(run)
        losses = self.folder / "loss_0.txt"
        self.stepped = losses.exists() and losses.stat().st_size > 0
        wanted = SIGNALS[self.name]
        if run.poll() is None:
            try:
                os.kill(pid, wanted)
            except ProcessLookupError:
                pass
        alone = rank < 0  # the process that was started: the launcher, or data-parallel's only one
        if alone and wanted == signal.SIGSTOP:
            time.sleep(0.5)
            run.kill()  # frozen with nobody beside it: whoever froze it ends it
        return self.check_end(run, rank, alone, wanted, time.monotonic())

    def check_end(self, run, rank, alone, wanted, since):
        if not alone and wanted in (LEAVES, signal.SIGKILL, signal.SIGSTOP):
            self.named_after = self.wait_until_named(run, rank, since)
        try:
            code = run.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            run.kill()
            return "it hangs", "hang"
        said = self.said()
        deadline = time.monotonic() + 5
        while processes_of(self.folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        if left := processes_of(self.folder):
            for orphan in left:
                os.kill(orphan, signal.SIGKILL)
            return f"processes are left: {left}", "orphans"
        if problem := self.wrong_end(code, rank, alone, wanted, said):
            return problem, "wrong end"
        if code == 0:
            return "", "done before"
        return self.resume()

    def wrong_end(self, code, rank, alone, wanted, said):
        if code == 0:
            return ""  # it had come to its end before
        if self.by_mpirun:  # whose exit code and last words are its own
            signalled = wanted in (signal.SIGHUP, signal.SIGTERM)
            return "" if alone or signalled or self.names(rank) else f"rank {rank} is not named: {said[-600:]}"
        if wanted in (signal.SIGHUP, signal.SIGTERM):
            # A process that has not yet got to catching signals dies of them.
            allowed = {130} if self.stepped else {130, -wanted, 4}
            if code not in allowed:
                return f"exit code {code} after {self.name}: {said[-300:]}"
            lost = self.stepped and not (self.folder / "checkpoint.safetensors").exists()
            return "nothing was saved" if lost else ""
        if alone:
            return "" if code == -signal.SIGKILL else f"exit code {code}: {said[-300:]}"
        if code != 4:
            return f"exit code {code} instead of 4: {said[-300:]}"
        if wanted == LEAVES and self.backend == "gloo":  # which knows of a connection alone
            return "" if "lost its connection" in said else f"nothing is said of it: {said[-300:]}"
        return "" if f"rank {rank}" in said.splitlines()[-1] or (wanted == LEAVES and self.names(rank)) else f"rank {rank} is not named: {said[-300:]}"

    def resume(self):
        if not (self.folder / "checkpoint.safetensors").exists():
            return "", "nothing saved"
        run = self.start("--resume")
        try:
            code = run.wait(2 * PATIENCE_S)
        except subprocess.TimeoutExpired:
            for pid in processes_of(self.folder):
                os.kill(pid, signal.SIGKILL)
            return "the resumed run hangs", "hang"
        if code != 0:
            log = pathlib.Path(f"{self.folder}.log").read_text(errors="replace")
            return f"the resumed run ended with code {code}: {log[-300:]}", "not resumed"
        steps = [json.loads(line)["step"] for line in (self.folder / "steps.jsonl").read_text().splitlines()]
        if steps != list(range(1, len(steps) + 1)) or len(steps) < STEPS:
            return f"{len(steps)} steps are on record, not each once", "record"
        return "", "resumed"


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--faults", default=300, type=int)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--jobs", default=1, type=int, help="faults at a time; timeouts need free cores")
    parser.add_argument("--backend", default="auto", help="auto, shm, gloo or mpi (by mpirun)")
    parser.add_argument("--device", default="cpu", help="cuda: workers on one GPU exchange in its memory")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    root = pathlib.Path(tempfile.mkdtemp(prefix="syncopate-faults-"))
    (root / "data").mkdir()
    write_data(root / "data")
    program = arguments.build / "syncopate"
    outcomes, problems, named = collections.Counter(), [], collections.defaultdict(list)
    before = files_in_dev_shm()

    def one(number):
        fault = Fault(number, arguments, program, root)
        problem, outcome = fault.carry_out()
        if not problem:
            shutil.rmtree(fault.folder, ignore_errors=True)
        return fault, problem, outcome

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for done, (fault, problem, outcome) in enumerate(pool.map(one, range(arguments.faults)), 1):
            outcomes[fault.name, outcome] += 1
            if fault.named_after is not None:
                named[fault.name].append(fault.named_after)
            if problem:
                problems.append(f"{fault.title()}: {problem}")
                print(problems[-1], file=sys.stderr, flush=True)
            if done % 25 == 0:
                print(f"{done} of {arguments.faults}, {len(problems)} problems", file=sys.stderr, flush=True)
    if left := files_in_dev_shm() - before:
        problems.append(f"left in /dev/shm: {', '.join(sorted(left))}")
    kinds = ["resumed", "nothing saved", "done before", "hang", "orphans", "wrong end", "not resumed", "record"]
    lines = ["| fault | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    for name in [*SIGNALS, LEAVES]:
        lines.append(f"| {name} | " + " | ".join(str(outcomes[name, kind]) for kind in kinds) + " |")
    lines += ["", "| fault | seconds until the victim was named: median | 95th percentile | most | of |", "|---|---|---|---|---|"]
    for name, seconds in named.items():
        late = sorted(seconds)[min(len(seconds) - 1, int(0.95 * len(seconds)))]
        lines.append(f"| {name} | {statistics.median(seconds):.2f} | {late:.2f} | {max(seconds):.2f} | {len(seconds)} |")
    shm = "something" if left else "nothing"
    report([f"{arguments.faults} faults, backend {arguments.backend}, device {arguments.device}, seed {arguments.seed}: "
            f"{len(problems)} problems, {shm} left in /dev/shm", "", *lines], arguments.out)
    if problems:
        sys.exit(f"{len(problems)} problems; runs are left in {root}")
    shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
