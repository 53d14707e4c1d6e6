#!/usr/bin/env python3
"""What a step takes on a GPU: BERT-base, GPT-2 and ResNet-18 alone, and workers that share the GPU; and how far its
gradients are from the CPU's.

    bench/gpu.py --program build-cuda/bench/gpu_step > report.md

Needs a build with a CUDA toolkit (docs/precision-and-devices.md) and -DSYNCOPATE_BENCH=ON. Every figure is the median over
blocks of ten steps, in a process of its own; alone on the GPU.
"""
import argparse
import json
import subprocess
import sys


def run(program, *options):
    made = subprocess.run([program, *map(str, options)], capture_output=True, text=True, timeout=300)
    lines = [line for line in made.stdout.splitlines() if line.startswith("{")]
    if made.returncode != 0 or not lines:
        sys.exit(f"{program} {' '.join(map(str, options))} failed:\n{made.stderr[-2000:]}")
    for line in made.stderr.splitlines():
        print(line, file=sys.stderr)
    return json.loads(lines[-1])


def alone(program):
    print("| model, bf16 | batch | ms a step | without graphs | examples/s |\n|---|---|---|---|---|")
    cases = [("bert-base", 8, 128), ("bert-base", 32, 128), ("bert-base", 128, 128), ("resnet-18", 32, 0),
             ("resnet-18", 128, 0), ("resnet-18", 512, 0), ("gpt2", 8, 1024)]
    for model, batch, length in cases:
        shape = ["--model", model, "--batch", batch] + (["--seq", length] if length else [])
        one = run(program, *shape)
        eager = run(program, *shape, "--steps", 20, "--set", "compute.graphs=false")
        name = f"{model}, length {length}" if length else f"{model}, 32 x 32"
        print(f"| {name} | {batch} | {one['ms_per_step']:.2f} | {eager['ms_per_step']:.2f} | "
              f"{one['examples_per_s']:,.0f} |", flush=True)
    clipped = run(program, "--batch", 32, "--clip", 1)
    padded = run(program, "--batch", 32, "--padded", 0.5)
    print(f"\nBERT-base at batch 32, the gradient clipped: {clipped['ms_per_step']:.2f} ms; texts padded by up to a half "
          f"of their length: {padded['ms_per_step']:.2f} ms.\n")


def together(program):
    print("| workers on one GPU, BERT-base, batch 32 each | k = 2: ms, sequences/s | k = 4 |\n|---|---|---|")
    cases = [("no exchange (local-sgd that never averages)", ["local-sgd", "--set", "strategy.every=1000000"]),
             ("ddp", ["ddp"]), ("hogwild", ["hogwild"]), ("hogwild by turns (no MPS)", ["hogwild", "--no-mps"])]
    for name, mode in cases:
        cells = []
        for workers in (2, 4):
            one = run(program, "--batch", 32, "--workers", workers, "--mode", *mode)
            cells.append(f"{one['ms_per_step']:.1f}, {one['examples_per_s']:,.0f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print()


def gradients(program):
    print("| gradients against the CPU's in fp32, ‖difference‖ / ‖gradient‖ | fp32 | bf16 |\n|---|---|---|")
    cases = [("bert-mini, no dropout", ["bert-mini", "--batch", 8, "--dropout", 0]),
             ("bert-mini, dropout but in attention, padded",
              ["bert-mini", "--batch", 8, "--attention-dropout", 0, "--padded", 0.5]),
             ("gpt2, length 64, no dropout", ["gpt2", "--batch", 2, "--seq", 64, "--dropout", 0]),
             ("resnet-8", ["resnet-8", "--batch", 32])]
    for name, model in cases:
        cells = []
        for precision in ("fp32", "bf16"):
            if precision == "fp32" and "padded" in name:
                cells.append("libtorch's dropout")
                continue
            one = run(program, "--compare", "--precision", precision, "--model", *model)
            cells.append(f"{one['gradient_off_by']:.1e}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bench/gpu_step")
    program = parser.parse_args().program
    alone(program)
    together(program)
    gradients(program)


if __name__ == "__main__":
    main()
