"""What the benchmarks in Python share: their options, starting programs, medians and tables."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def parser_for(text):
    """A parser with --build; `text` is the benchmark's own description."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    return parser


def shared():
    """The folder of data that are not part of the repository."""
    return Path(os.environ.get("SYNCOPATE_SHARED", ROOT.parent / "shared"))


def text_tasks():
    """Flags of `train` for real texts of mixed length, by a name for them."""
    data = shared() / "data"
    vocab = ["--vocab", data / "bert_vocab/vocab.txt"]
    return {"sst2": ["--task", "sst2", "--data", data / "glue_sst2", *vocab],
            "rte": ["--task", "rte", "--data", data / "glue_rte", *vocab],
            "tweets": ["--task", "csv", "--data", data / "davidson/labeled_data.csv", "--text", "tweet", "--label", "class", *vocab]}


def two_hosts(file, devices, latency_ms, gbit):
    """A cluster file of two hosts of so many devices with a link between them; its path."""
    hosts = "\n".join(f'[[host]]\nname = "{name}"\ndevices = {devices}\n' for name in ("left", "right"))
    link = f'[[link]]\nbetween = ["left", "right"]\nlatency_ms = {latency_ms}\ngbit = {gbit}\n'
    file.write_text(f'name = "{file.stem}"\n\n{hosts}\n{link}')
    return file


def add_peer_options(parser):
    parser.add_argument("--peer", default=shared() / "peers/torch_peer.py", type=Path)
    parser.add_argument("--python", default="/usr/bin/python3")


def pick(text, separator, known, what):
    """The names in `text`, all of `known` where there are none."""
    names = [name.strip() for name in text.split(separator) if name.strip()] or list(known)
    for name in names:
        if name not in known:
            sys.exit(f"there is no {what} {name}; there are: {f'{separator} '.join(known)}")
    return names


def rounds(count):
    for number in range(count):
        yield number
        print(f"round {number + 1} of {count} done", file=sys.stderr, flush=True)


def run(command, environment=None):
    """Runs a program to its end and gives what it printed; ends the benchmark when it fails."""
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout


def run_json(command, environment=None):
    """The same for a program whose last line is JSON."""
    return json.loads(run(command, environment).strip().splitlines()[-1])


def machine(step_program):
    """What bench/step says about this machine, and OpenBLAS's core type in it, which the peer must be given."""
    compute = run_json([step_program, "--mode", "single", "--workers", "1", "--steps", "1"])["compute"]
    core = re.search(r"with (\S+) kernels", compute)
    return compute, core[1] if core else ""


def peer_environment(core, **more):
    """The threads and the kernels that ours have."""
    return dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", **({"OPENBLAS_CORETYPE": core} if core else {}), **more)


def result_of(folder):
    """A run's result, or nothing where it has none."""
    path = Path(folder) / "result.json"
    return json.loads(path.read_text()) if path.exists() else None


def median_of(rows, key):
    return statistics.median(row[key] for row in rows)


def ratios(rows, others, key):
    """Round by round: the speed of a machine changes between rounds."""
    return [row[key] / other[key] for row, other in zip(rows, others)]


def row(*cells):
    return f"| {' | '.join(map(str, cells))} |"


def heading(*cells):
    return [row(*cells), "|" + "---|" * len(cells)]


def report(lines, out=None):
    text = "\n".join(lines) + "\n"
    print(text)
    if out:
        out.write_text(text)
