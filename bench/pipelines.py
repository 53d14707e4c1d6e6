#!/usr/bin/env python3
"""How far predictions of pipelines are off: every cell is played out by `syncopate simulate` and trained in the lab.

    bench/pipelines.py [--build build] [--rounds 1] [--cells 2x1;4x2,direct,int8] [--seconds 15] [--out FILE]

A cell is stages x replicas on a network whose rates are divided by a number, with codecs of activations and gradients. The step is
measured once in each round, by two workers at once, at the sizes of the micro-batches; a cell's number is the median over rounds. An error is
(predicted - measured) / measured of the milliseconds per iteration. "own" is the error of the line at the end of `train`, which
knows what the run itself computed. Steps of the first epoch are left out, in which ac-sgd sends examples in full. The model is
bert-tiny with eight blocks instead of two, made of one that `train` saves; the task is supersense (built-in). Exits with 1 where a
cell is off by more than 15 %.
"""
import json
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import heading, parser_for, report, result_of, rounds, row, run, run_json

BLOCKS = 8
EPOCH = 4  # steps
BOUND = 0.15
# (stages, replicas, network, scale, activations, gradients)
CELLS = [
    (2, 1, "two-sites", 20, "none", "none"),
    (2, 1, "two-sites", 100, "direct", "none"),
    (2, 1, "two-sites", 100, "ac-sgd", "none"),
    (4, 1, "regional", 10, "none", "none"),
    (4, 1, "worldwide", 10, "fp16", "none"),
    (2, 2, "two-sites", 20, "none", "none"),
    (2, 2, "two-sites", 50, "direct", "int8"),
    (8, 1, "worldwide", 4, "none", "none"),
    (8, 1, "regional", 20, "direct", "none"),
    (4, 2, "regional", 10, "none", "none"),
    (4, 2, "worldwide", 20, "ac-sgd", "int8"),
]


def name_of(cell):
    stages, replicas, network, scale, activations, gradients = cell
    return f"{stages}x{replicas}, {network} ÷ {scale}, {activations}, {gradients}"


def read_tensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length :]
    return {name: (each, body[each["data_offsets"][0] : each["data_offsets"][1]]) for name, each in header.items()}


def write_tensors(path, tensors):
    header, body = {}, b""
    for name, (each, data) in tensors.items():
        header[name] = {"dtype": each["dtype"], "shape": each["shape"], "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def deep_model(program, folder):
    """bert-tiny with its blocks repeated."""
    run([program, "train", "--task", "supersense", "--model", "bert-tiny", "--strategy", "single", "--steps", 1, "--limit", 64,
         "--set", "task.test_limit=16", "--out", f"{folder}/tiny"])
    model = Path(folder) / "tiny" / "model"
    tensors = read_tensors(model / "model.safetensors")
    for name in list(tensors):
        for block in range(2, BLOCKS):
            if f"layer.{block % 2}." in name:
                tensors[name.replace(f"layer.{block % 2}.", f"layer.{block}.")] = tensors[name]
    write_tensors(model / "model.safetensors", tensors)
    config = json.loads((model / "config.json").read_text())
    config["num_hidden_layers"] = BLOCKS
    (model / "config.json").write_text(json.dumps(config))
    return model


def task_flags(model, options):
    return ["--task", "supersense", "--model", model, "--max-length", options.length, "--limit", EPOCH * options.batch, "--set",
            "task.test_limit=16"]


def cell_flags(cell, model, options):
    stages, replicas, network, scale, activations, gradients = cell
    flags = ["--network", network, "--scale", scale, "--workers", stages * replicas, "--stages", stages, "--global-batch",
             options.batch, "--threads", 1, "--set", f"pipeline.micro_batches={options.batch // replicas // options.micro}",
             "--set", f"pipeline.schedule={options.schedule}", "--set",
             "pipeline.cut=" + ",".join([str(BLOCKS // stages)] * stages), "--activation-codec", activations, *task_flags(model, options)]
    if activations in ("direct", "ac-sgd"):
        flags += ["--set", "activation.forward_bits=4", "--set", "activation.backward_bits=8"]
    return flags + (["--codec", gradients] if replicas > 1 else [])


def profile(program, model, options, folder):
    file = f"{folder}/profile.json"
    # By two workers at once: as much else goes on as in a run.
    run([program, "probe", "--no-links", "--profile", file, "--workers", 2, "--threads", 1, "--batches",
         f"{options.micro // 2},{options.micro},{options.batch}", "--global-batch", 2 * options.micro, *task_flags(model, options)])
    return file


def measure(program, cell, expected_ms, model, options, folder):
    steps = 2 * EPOCH + min(20, max(3, round(1e3 * options.seconds / expected_ms)))
    command = [program, "train", *cell_flags(cell, model, options), "--steps", steps, "--eval-every", steps, "--save-every",
               10 * steps, "--set", "comm.timeout=600", "--out", folder]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{' '.join(map(str, command))} failed:\n{done.stderr[-600:]}", file=sys.stderr)
        return None
    lines = [json.loads(line) for line in (Path(folder) / "steps.jsonl").read_text().splitlines()]
    result = result_of(folder)
    return {"ms": statistics.median(line["ms"] for line in lines[EPOCH + 1 :]),
            "own": (result.get("predicted") or {}).get("ms"),
            "steady": (result.get("network") or {}).get("trustworthy", True)}


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--cells", default="", help="those whose names hold one of these, separated by ;")
    parser.add_argument("--seconds", type=float, default=15, help="of training, roughly, in a cell")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32, help="of all replicas together")
    parser.add_argument("--micro", type=int, default=4, help="examples of a micro-batch")
    parser.add_argument("--schedule", default="gpipe")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    program = (options.build / "syncopate").resolve()
    wanted = [text.strip() for text in options.cells.split(";") if text.strip()]
    cells = [cell for cell in CELLS if not wanted or any(text in name_of(cell) for text in wanted)]
    seen, failed = {cell: [] for cell in cells}, []
    for _ in rounds(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            model = deep_model(program, folder)
            file = profile(program, model, options, folder)
            for number, cell in enumerate(cells):
                predicted = run_json([program, "simulate", "--profile", file, "--one-machine", "--json", "--out",
                                      f"{folder}/sim-{number}", *cell_flags(cell, model, options)])
                measured = measure(program, cell, predicted["ms_per_iteration"], model, options, f"{folder}/run-{number}")
                if measured is None:
                    failed.append(name_of(cell))
                    continue
                seen[cell].append((predicted, measured))
                print(name_of(cell), round(predicted["ms_per_iteration"]), round(measured["ms"]), measured["own"], file=sys.stderr)
    lines = heading("stages x replicas", "network", "activations, gradients", "exchange", "predicted ms", "measured ms", "error", "own", "")
    errors, off = [], []
    for cell, pairs in seen.items():
        if not pairs:
            continue
        good = [pair for pair in pairs if pair[1]["steady"]] or pairs
        predicted = statistics.median(p["ms_per_iteration"] for p, _ in good)
        measured = statistics.median(m["ms"] for _, m in good)
        error = predicted / measured - 1
        own = [m["own"] / m["ms"] - 1 for _, m in good if m["own"]]
        errors.append(abs(error))
        if abs(error) > BOUND:
            off.append(name_of(cell))
        stages, replicas, network, scale, activations, gradients = cell
        share = statistics.median(p["exchange_ms"] / p["ms_per_iteration"] for p, _ in good)
        lines.append(row(f"{stages} x {replicas}", f"{network} ÷ {scale}", f"{activations}, {gradients}", f"{100 * share:.0f} %",
                         f"{predicted:.0f}", f"{measured:.0f}", f"{100 * error:+.1f} %",
                         f"{100 * statistics.median(own):+.1f} %" if own else "–",
                         "" if any(m["steady"] for _, m in pairs) else "machine too busy"))
    if errors:
        lines += ["", f"{len(errors)} cells: median error {100 * statistics.median(errors):.1f} %, largest {100 * max(errors):.1f} %"]
    lines += [f"- off by more than {100 * BOUND:.0f} %: {name}" for name in off] + [f"- failed: {name}" for name in failed]
    report(lines, options.out)
    return 1 if off or failed else 0


if __name__ == "__main__":
    sys.exit(main())
