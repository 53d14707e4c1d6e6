#!/usr/bin/env python3
"""Data beyond memory: what a large text costs at the start of a run and in every worker's memory.

    bench/token_cache.py --texts FOLDER --vocab VOCAB.TXT --bpe FOLDER [--tasks mlm,clm,csv] [--megabytes 2000]
                         [--workers 4] [--steps 60] [--work FOLDER] [--out report.md]

Makes a text of so many megabytes (and one of a fortieth of it) from the .txt files of --texts, repeated with changes, so that no
document comes twice. Trains bert-tiny (mlm), gpt-tiny (clm) and a classifier (csv: a table of the same paragraphs and three
classes) on it by --cache: first start, second start, and the same with task.cache=off on the smaller text; and on a text of a
few kilobytes, which shows what the model alone needs. Prints for each

  start      seconds from the command to the line that says what is trained on, megabytes of text per second of it, and the
             seconds of processors that all workers took for it: what counts on a machine that does other things as well
  memory     the most that a worker has resident while it trains, and at all (making tokens included); above the model's
  data       the share of a step that waits for data
"""
import csv
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from harness import heading, parser_for, report, result_of, row

READY = re.compile(r"training .*and \d+ test examples")


def write_text(sources, path, megabytes, seed=1):
    """Paragraphs of the sources again and again, in each of which some words are exchanged and one is a number."""
    draw = random.Random(seed)
    paragraphs = []
    for source in sources:
        text = source.read_text(errors="replace").replace("***", "").replace("\r", "")
        paragraphs += [" ".join(part.split()) for part in text.split("\n\n")]
    paragraphs = [part.split(" ") for part in paragraphs if len(part) > 40]
    words = [word for part in paragraphs for word in part]
    wanted, written = megabytes * 1_000_000, 0
    with open(path, "w") as file:
        number = 0
        while written < wanted:
            for part in paragraphs:
                changed = list(part)
                for _ in range(1 + len(part) // 20):
                    changed[draw.randrange(len(part))] = words[draw.randrange(len(words))]
                number += 1
                line = " ".join(changed) + f" {number}\n"
                file.write(line)
                written += len(line.encode())
                if written >= wanted:
                    break


def table_of(path):
    """The same paragraphs as a table, each with one of three classes."""
    table = path.with_suffix(".csv")
    if not table.exists() or table.stat().st_mtime < path.stat().st_mtime:
        writing = table.with_suffix(".writing")  # half a table must not be taken for one
        with open(path) as lines, open(writing, "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["text", "label"])
            rows.writerows((line.rstrip("\n"), "abc"[len(line) % 3]) for line in lines)
        writing.rename(table)
    return table


def memory_of(pid):
    """Resident and most resident bytes of a process."""
    found = dict(re.findall(r"(VmRSS|VmHWM|RssAnon):\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()))
    return {name: int(value) * 1024 for name, value in found.items()}


def cpu_of(pid):
    """Seconds of processors that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def workers_of(folder):
    """Processes of a run, the launcher apart."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or str(folder) not in (entry / "cmdline").read_text():
                continue
            if b"SYNCOPATE_RANK=" in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def train(args, task, data, cache, name):
    """One run: seconds to its start, the most memory of a worker, the share of its steps that waits for data."""
    out = args.work / "runs" / name
    shutil.rmtree(out, ignore_errors=True)
    vocab = args.bpe if task == "clm" else args.vocab
    command = [args.build / "syncopate", "train", "--task", task, "--data", data, "--workers", args.workers, "--steps", args.steps,
               "--batch-size", 8, "--out", out, "--cache", cache, "--set", "task.test_limit=8", "--eval-every", args.steps,
               "--threads", 1] + (["--vocab", vocab] if vocab else []) + (
                   ["--text", "text", "--label", "label"] if task == "csv" else [])
    begin = time.monotonic()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines, ready = [], []

    def listen():
        for line in process.stdout:
            lines.append(line)
            if READY.search(line) and not ready:
                ready.append(time.monotonic() - begin)

    listener = threading.Thread(target=listen)
    listener.start()
    most, cpu = {}, {}
    while process.poll() is None:
        for pid in workers_of(out):
            try:
                now, taken = memory_of(pid), cpu_of(pid)
            except OSError:
                continue
            kept = most.setdefault(pid, {"training": 0, "anonymous": 0, "ever": 0})
            kept["ever"] = max(kept["ever"], now.get("VmHWM", 0))
            if not ready:
                cpu[pid] = taken
            else:
                kept["training"] = max(kept["training"], now.get("VmRSS", 0))
                kept["anonymous"] = max(kept["anonymous"], now.get("RssAnon", 0))
        time.sleep(0.05)
    listener.join()
    if process.returncode != 0 or not ready:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{''.join(lines)}")
    result = result_of(out)
    if not most:
        sys.exit("no worker's memory was seen")
    return {"start": ready[0], "data": result["data_ms"] / result["ms_per_iteration"], "cpu": sum(cpu.values()), "loss": (out / "loss_0.txt").read_text(),
            **{key: max(kept[key] for kept in most.values()) for key in ("training", "anonymous", "ever")}}


def measure(args, task, texts, lines):
    small, medium, large = map(table_of, texts) if task == "csv" else texts
    cache = args.work / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    tiny = train(args, task, small, "off", "tiny")
    plain = train(args, task, medium, "off", "memory")
    rows = [("the model alone", small, tiny), ("task.cache=off", medium, plain),
            ("first start", medium, train(args, task, medium, cache, "medium")),
            ("first start", large, train(args, task, large, cache, "first")),
            ("second start", large, train(args, task, large, cache, "second")),
            ("second start, again", large, train(args, task, large, cache, "third"))]
    lines += [f"**{task}**, {args.workers} workers, {args.steps} steps", ""]
    lines += heading("run", "text, MB", "start, s", "over the model's, s", "text, MB/s", "processors, s", "MB per second of two processors", "memory, training, MB", "above the model's",
                     "at most ever, MB", "above the model's", "waits for data")
    for what, data, found in rows:
        megabytes = data.stat().st_size / 1e6
        over, cpu = found["start"] - tiny["start"], found["cpu"] - tiny["cpu"]
        lines.append(row(what, f"{megabytes:.0f}", f"{found['start']:.2f}", f"{over:.2f}",
                         f"{megabytes / over:.0f}" if over > 1 else "–", f"{found['cpu']:.1f}",
                         f"{2 * megabytes / cpu:.0f}" if cpu > 1 else "–", f"{found['training'] / 1e6:.0f}",
                         f"{(found['training'] - tiny['training']) / 1e6:.0f}", f"{found['ever'] / 1e6:.0f}",
                         f"{(found['ever'] - tiny['ever']) / 1e6:.0f}", f"{100 * found['data']:.2f} %"))
    same = rows[2][2]["loss"] == plain["loss"]
    lines += ["", f"Losses of all steps with the cache and without: {'the same to the last digit' if same else 'DIFFERENT'}.", ""]
    return same


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--vocab", type=Path, default=None, help="a BERT vocab.txt; none: learned from the text")
    parser.add_argument("--bpe", type=Path, default=None, help="a folder with vocab.json and merges.txt; none: learned")
    parser.add_argument("--tasks", default="mlm,clm")
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--work", type=Path, default=None, help="a folder for texts and caches, kept; default: a temporary one")
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    temporary = None
    if args.work is None:
        temporary = tempfile.TemporaryDirectory()
        args.work = Path(temporary.name)
    args.work.mkdir(parents=True, exist_ok=True)
    sources = sorted(args.texts.glob("*.txt"))
    texts = [args.work / f"{name}.txt" for name in ("tiny", "medium", "large")]
    for path, megabytes in zip(texts, (0.05, args.megabytes / 40, args.megabytes)):
        if not path.exists() or abs(path.stat().st_size / 1e6 - megabytes) > 1:
            write_text(sources, path, megabytes)
    lines = [f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start.", ""]
    same = all([measure(args, task, texts, lines) for task in args.tasks.split(",")])
    report(lines, args.out)
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
