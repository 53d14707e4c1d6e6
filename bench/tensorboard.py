#!/usr/bin/env python3
"""Does TensorBoard read our event files?

Installs TensorBoard from PyPI into a temporary environment (or takes --python, one that has it), trains a tiny run
with --tensorboard, kills it in the middle, resumes it, and compares what TensorBoard's own EventAccumulator finds
with steps.jsonl and evals.jsonl: every tag, step and value, each once. Ends with 0 if all is equal.
"""
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from harness import parser_for, run

READER = """
import json, sys
from tensorboard import version
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator, SCALARS
events = EventAccumulator(sys.argv[1], size_guidance={SCALARS: 0})
events.Reload()
tags = {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
print(json.dumps({"version": version.VERSION, "tags": tags}))
"""

# TensorBoard's tags of a step, and where steps.jsonl has their values.
OF_STEPS = {"train/loss": "loss", "train/lr": "lr", "train/grad_norm": "grad_norm", "time/step_ms": "ms",
            "time/data_ms": "data_ms", "time/compute_ms": "compute_ms", "time/forward_ms": "forward_ms",
            "time/backward_ms": "backward_ms", "time/optimizer_ms": "optimizer_ms", "time/exchange_ms": "exchange_ms",
            "time/hidden_ms": "hidden_ms", "traffic/bytes_sent": "bytes_sent"}


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def expected(folder):
    """By tag: [step, value], in order."""
    steps = lines_of(folder / "steps.jsonl")
    tags = {tag: [[step["step"], step[name]] for step in steps] for tag, name in OF_STEPS.items()}
    tags["train/examples_per_s"] = [[step["step"], 1e3 * step["examples"] / step["ms"]] for step in steps]
    for record in lines_of(folder / "evals.jsonl"):
        for name, value in record.items():
            if name not in ("step", "split", "model", "examples", "seconds", "confusion"):
                tags.setdefault(f"{record['split']}/{name}", []).append([record["step"], value])
    return tags


def same(found, wanted):
    """Event files hold single precision."""
    return len(found) == len(wanted) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= 1e-6 * abs(b[1]) for a, b in zip(found, wanted))


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--python", help="an interpreter that has TensorBoard (default: install it)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        python = options.python
        if not python:
            venv.create(Path(temporary) / "venv", with_pip=True)
            python = Path(temporary) / "venv/bin/python"
            run([python, "-m", "pip", "install", "-q", "tensorboard", "setuptools<81"])
        folder = Path(temporary) / "run"
        command = [options.build / "syncopate", "train", "--task", "supersense", "--strategy", "ddp", "--workers", "2",
                   "--steps", "60", "--save-every", "20", "--eval-every", "20", "--tensorboard", "--set",
                   "task.test_limit=200", "--out", folder]
        killed = subprocess.run([*map(str, command), "--set", "comm.fault=0:47:forward:kill"], capture_output=True)
        if killed.returncode == 0:
            sys.exit("the run was to be killed in step 47, and was not")
        run([*command, "--resume"])
        found = json.loads(run([python, "-c", READER, folder / "tensorboard"]))
        wanted = expected(folder)
        wrong = [tag for tag in sorted({*wanted, *found["tags"]})
                 if not same(found["tags"].get(tag, []), wanted.get(tag, []))]
        values = sum(map(len, wanted.values()))
        for tag in wrong:
            print(f"{tag}: TensorBoard has {found['tags'].get(tag, [])[:3]}…, the record {wanted.get(tag, [])[:3]}…")
        print(f"TensorBoard {found['version']}: {len(wanted) - len(wrong)} of {len(wanted)} tags equal, "
              f"{values} values, through a kill and a resume")
        sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
