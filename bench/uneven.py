#!/usr/bin/env python3
"""What --balance gains when one of two workers is slow: equal and balanced shares in turn, on this machine.

    bench/uneven.py [--build build] [--task supersense|idx|sst2|rte|tweets] [--rounds 3] [--steps 120] [--batch 64]
                    [--cores 1,0.5] [--out report.md]

supersense, sst2, rte, tweets: bert-mini on texts of different lengths, shared out by their tokens (sst2, rte and tweets need
the folder $SYNCOPATE_SHARED, ../shared); idx: resnet-8 on the built-in Fashion-MNIST, whose examples all cost the same. Two
workers with one thread each, started by hand. Each has a part of a core, by a CPU quota (cgroup v1 or v2, which needs root).
On a busy machine small parts are what a worker really gets: --cores 0.2,0.1 is as uneven as 1,0.5. Balanced and equal runs
have the same settings and global batches. Reported are examples per second over whole runs, the steps before the first look at
the speeds included, and over the second half of the steps.
"""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

from harness import heading, parser_for, report, result_of, rounds, row, text_tasks

TASKS = {"supersense": ["--task", "supersense", "--model", "bert-mini"], "idx": ["--task", "idx", "--model", "resnet-8"],
         **{name: [*flags, "--model", "bert-mini"] for name, flags in text_tasks().items()}}
PERIOD_US = 20_000  # short against a step, so that a worker is slow rather than stopped now and then


@contextlib.contextmanager
def limited_group(cores):
    """A control group whose processes together get so much of a core; yields the file that takes their numbers."""
    first = pathlib.Path("/sys/fs/cgroup/cpu")
    folder = (first if first.exists() else pathlib.Path("/sys/fs/cgroup")) / f"syncopate-uneven-{os.getpid()}-{cores}"
    try:
        folder.mkdir()
        quota = int(cores * PERIOD_US)
        if first.exists():
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(quota))
            (folder / "cpu.shares").write_text("262144")  # before others: what it may have it gets
        else:
            (folder / "cpu.max").write_text(f"{quota} {PERIOD_US}")
            (folder / "cpu.weight").write_text("10000")
    except OSError as error:
        sys.exit(f"cannot limit a worker's CPU: {error}; this needs root and a writable /sys/fs/cgroup")
    try:
        yield folder / "cgroup.procs"
    finally:
        folder.rmdir()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(program, settings, groups, balance):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="uneven-"))
    command = [program, "train", *settings, "--world-size", "2", "--master", f"127.0.0.1:{free_port()}", "--threads", "1",
               "--out", folder / "run", *(["--balance"] if balance else [])]
    workers = []
    for rank in range(2):
        workers.append(subprocess.Popen([*command, "--rank", str(rank)], stderr=subprocess.PIPE, text=True,
                                        preexec_fn=lambda group=groups[rank]: group.write_text(str(os.getpid()))))
    errors = [worker.communicate()[1] for worker in workers]
    if any(worker.returncode for worker in workers):
        sys.exit(f"a run failed with {[worker.returncode for worker in workers]}:\n" + "\n".join(errors))
    steps = [json.loads(line) for line in (folder / "run/steps.jsonl").read_text().splitlines()]
    result = result_of(folder / "run")
    shutil.rmtree(folder)
    rate = lambda part: sum(s["examples"] for s in part) / sum(s["ms"] for s in part) * 1e3
    return {"whole": rate(steps[1:]), "late": rate(steps[len(steps) // 2:]), "loss": result["train_loss"],
            "shares": result.get("shares")}


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=64, help="examples per step over both workers")
    parser.add_argument("--task", default="supersense", choices=TASKS)
    parser.add_argument("--cores", default="1,0.5", help="of the first worker and the second")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    settings = [*TASKS[options.task], "--strategy", "ddp", "--global-batch", str(options.batch),
                "--steps", str(options.steps), "--limit", "4000", "--set", "task.test_limit=16"]
    rows = []
    first, second = map(float, options.cores.split(","))
    with limited_group(first) as fast, limited_group(second) as slow:
        for _ in rounds(options.rounds):
            rows.append([run(options.build / "syncopate", settings, (fast, slow), balance) for balance in (False, True)])
    lines = heading("round", "equal, examples/s", "balanced", "ratio", "second half: equal", "balanced", "ratio", "final shares")
    ratios = {"whole": [], "late": []}
    for number, (equal, balanced) in enumerate(rows):
        cells = []
        for part in ratios:
            ratios[part].append(balanced[part] / equal[part])
            cells += [f"{equal[part]:.1f}", f"{balanced[part]:.1f}", f"{ratios[part][-1]:.2f}"]
        lines.append(row(number + 1, *cells, " + ".join(map(str, balanced["shares"]))))
    worst = max(abs(a["loss"] - b["loss"]) / b["loss"] for b, a in rows)
    lines += ["", f"- medians of the ratios: {statistics.median(ratios['whole']):.2f} over whole runs, "
              f"{statistics.median(ratios['late']):.2f} over their second halves",
              f"- training losses of a pair differ by at most {worst:.1e} of them (rounding)",
              f"- {options.task}, {options.batch} examples a step, {options.steps} steps; the workers have {first} and {second} "
              "of a core"]
    report(lines, options.out)


if __name__ == "__main__":
    main()
