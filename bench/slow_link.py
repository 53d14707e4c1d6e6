#!/usr/bin/env python3
"""How many examples a second do two workers train over a slow link? Two network namespaces joined by a link of
--mbit Mbit/s each way (tbf), one worker in each; ours beside the peer's ddp, interleaved, medians over the rounds.

    sudo bench/slow_link.py [--build build] [--peer ../shared/peers/torch_peer.py] [--mbit 100] [--rounds 3] [--out report.md]

Needs root, ip and tc. Everything it makes bears the name syncopate-bench and is removed at the end. Sizes: bert-mini, 30,522
words, batch 8 a worker, length 128, dropout 0.1, one thread a worker, fp32.
"""
import json
import pathlib
import statistics
import subprocess
import time

from harness import add_peer_options, heading, machine, median_of, parser_for, peer_environment, pick, ratios, report, rounds, row

SPACES = ["syncopate-bench-0", "syncopate-bench-1"]
ADDRESSES = ["10.231.47.1", "10.231.47.2"]
# name -> (flags of bench/step, timed steps)
OURS = {
    "ddp": (["--mode", "ddp"], 10),
    "ddp, int8": (["--mode", "ddp", "--set", "codec.name=int8"], 20),
    "ddp, top-k 1 %": (["--mode", "ddp", "--set", "codec.name=top-k"], 20),
    "ddp, power-sgd": (["--mode", "ddp", "--set", "codec.name=power-sgd", "--set", "codec.warmup=2"], 20),
    "ddp, one-bit": (["--mode", "ddp", "--set", "codec.name=one-bit", "--set", "codec.warmup=2"], 20),
    "local-sgd, every 16": (["--mode", "local-sgd", "--set", "strategy.every=16"], 48),
    "local-sgd, every 16, overlapped": (
        ["--mode", "local-sgd", "--set", "strategy.every=16", "--set", "strategy.overlap_average=true"], 48),
}
PEER_RANK = """
import argparse, json, sys
sys.path.insert(0, {folder!r})
import torch_peer
class Queue:
    def put(self, row): print(json.dumps(row), flush=True)
torch_peer.worker({rank}, argparse.Namespace(**{options!r}), Queue())
"""


def sh(command):
    subprocess.run(command.split(), check=True, capture_output=True, text=True)


def tear_down():
    for space in SPACES:
        subprocess.run(["ip", "netns", "del", space], capture_output=True)


def set_up(mbit):
    tear_down()
    for space in SPACES:
        sh(f"ip netns add {space}")
    sh(f"ip link add sync0 netns {SPACES[0]} type veth peer name sync1 netns {SPACES[1]}")
    for i, space in enumerate(SPACES):
        sh(f"ip -n {space} addr add {ADDRESSES[i]}/24 dev sync{i}")
        sh(f"ip -n {space} link set lo up")
        sh(f"ip -n {space} link set sync{i} up")
        if mbit > 0:
            sh(f"tc -n {space} qdisc add dev sync{i} root tbf rate {mbit}mbit burst 128kb latency 100ms")


def sent_bytes(i):
    text = subprocess.run(["ip", "-n", SPACES[i], "-s", "-j", "link", "show", f"sync{i}"], check=True, capture_output=True,
                          text=True).stdout
    return json.loads(text)[0]["stats64"]["tx"]["bytes"]


def both(commands, environments, limit):
    """One process in each namespace; rank 0's last line. Both end before this returns."""
    before = sent_bytes(0)
    running = [subprocess.Popen(["ip", "netns", "exec", SPACES[i], *map(str, commands[i])], env=environments[i],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for i in range(2)]
    try:
        outputs = [process.communicate(timeout=limit) for process in running]
    finally:
        for process in running:
            process.kill()
    for process, (_, errors) in zip(running, outputs):
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, process.args))}: {errors.strip()[-400:]}")
    return [(output.strip().splitlines() or [""])[-1] for output, _ in outputs], sent_bytes(0) - before


def environment(rank, port, core):
    return peer_environment(core, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", MASTER_ADDR=ADDRESSES[0],
                            MASTER_PORT=str(port), GLOO_SOCKET_IFNAME=f"sync{rank}")


def run_ours(program, flags, steps, port):
    command = [program, *flags, "--steps", steps, "--warmup", 3]
    lines, sent = both([command, command], [environment(rank, port, "") for rank in range(2)], 600)
    return dict(json.loads(lines[0]), sent=sent / (steps + 3))


def run_peer(options, steps, port, core):
    settings = dict(mode="ddp", model="bert", workers=2, layers=4, hidden=256, heads=4, vocab=30522, batch=8, seq=128, steps=steps,
                    warmup=2, threads=1, local_steps=8, port=port, channels=3, side=32, master=ADDRESSES[0])
    commands = [[options.python, "-c", PEER_RANK.format(folder=str(options.peer.parent), rank=rank, options=settings)]
                for rank in range(2)]
    lines, sent = both(commands, [environment(rank, port, core) for rank in range(2)], 600)
    ms = max(json.loads(line)[1] for line in lines)
    return {"ms_per_iteration": ms, "examples_per_s": 16e3 / ms, "sent": sent / (steps + 2)}


def main():
    parser = parser_for(__doc__)
    add_peer_options(parser)
    parser.add_argument("--mbit", type=float, default=100, help="0: as fast as it goes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows, separated by semicolons; default: all")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    program = (options.build / "bench/step").resolve()
    compute, core = machine(program)
    chosen = pick(options.only, ";", OURS, "row")
    rows, port = {}, 29650
    try:
        set_up(options.mbit)
        for _ in rounds(options.rounds):
            port += 1
            rows.setdefault("peer", []).append(run_peer(options, 6, port, core))
            for name in chosen:
                flags, steps = OURS[name]
                port += 1
                rows.setdefault(name, []).append(run_ours(program, flags, steps, port))
                time.sleep(0.5)
    finally:
        tear_down()

    def measured(name):
        return [f"{median_of(rows[name], 'ms_per_iteration'):.0f}", f"{median_of(rows[name], 'examples_per_s'):.1f}"]

    def megabytes(name):
        return f"{median_of(rows[name], 'sent') / 1e6:.2f}"

    lines = heading(f"two workers over {options.mbit:g} Mbit/s", "ms a step", "examples/s", "times the peer's ddp", "of each round",
                    "MB on the wire a step")
    lines.append(row("PyTorch's ddp", *measured("peer"), 1, "", megabytes("peer")))
    for name in chosen:
        each = ratios(rows[name], rows["peer"], "examples_per_s")
        lines.append(row(name, *measured(name), f"**{statistics.median(each):.1f}**", " ".join(f"{ratio:.1f}" for ratio in each),
                         megabytes(name)))
    lines += ["", f"- {compute}", f"- {options.rounds} interleaved rounds, medians; steps that talk rarely count by their mean",
              "- the bytes are the interface's, start-up and headers included"]
    report(lines, options.out)


if __name__ == "__main__":
    main()
