#!/usr/bin/env python3
"""Is the network of a lab the one that was asked for? Eight hosts of every preset at a scale that is stated: each ordered
pair's bandwidth by iperf3 and round trip by ping, both from Debian, run inside with `syncopate lab --exec`, beside what the
cluster says; and what `syncopate probe` finds there. Then PyTorch's DDP, unchanged, on one of them.

    bench/lab.py [--build build] [--presets worldwide,regional] [--pairs 12] [--seconds 4] [--no-peer] [--out report.md]

Installs iperf3 and iputils-ping with apt-get where they are missing (that needs root; the lab does not).
"""
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

from harness import add_peer_options, heading, parser_for, peer_environment, pick, report, row

# The scales bring every link to 10 Mbit/s .. 1 Gbit/s.
PRESETS = {"datacenter": 10, "spot": 10, "two-sites": 10, "regional": 10, "worldwide": 10}
PAYLOAD = 1448 / 1500  # of what a link carries
HOSTS = 8
PEER = """
import argparse, json, os, sys
sys.path.insert(0, {folder!r})
import torch_peer
class Queue:
    def put(self, row): print(json.dumps(row), flush=True)
torch_peer.worker(int(os.environ["RANK"]), argparse.Namespace(**{options!r}), Queue())
"""


def install_guests():
    missing = [package for program, package in [("iperf3", "iperf3"), ("ping", "iputils-ping")] if not shutil.which(program)]
    if missing:
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", *missing], check=True, stdout=subprocess.DEVNULL)


def rounds_of(pairs):
    """The pairs in rounds in which no host has two of them and at most two go on at once."""
    left, result = list(pairs), []
    while left:
        taken, busy = [], set()
        for pair in left:
            if len(taken) < 2 and not busy & set(pair):
                taken.append(pair)
                busy |= set(pair)
        left = [pair for pair in left if pair not in taken]
        result.append(taken)
    return result


def wait_for(path):
    while not path.exists():
        time.sleep(0.02)


def measure_one(address, seconds):
    pinged = subprocess.run(["ping", "-c", "5", "-i", "0.2", "-q", address], capture_output=True, text=True)
    round_trip = float(re.search(r"= ([\d.]+)/", pinged.stdout)[1])  # the least
    ramp = 1 if round_trip < 60 else 3 if round_trip < 200 else 5
    done = subprocess.run(["iperf3", "-c", address, "-t", str(seconds), "-O", str(ramp), "-J"], capture_output=True, text=True)
    answer = json.loads(done.stdout)
    return {"rtt_ms": round_trip, "gbit": answer["end"]["sum_received"]["bits_per_second"] * 1e-9}


def inside(plan_file, folder):
    """What runs on every host: a server, and the measurements that start here."""
    plan, rank = json.loads(plan_file.read_text()), int(os.environ["RANK"])
    server = subprocess.Popen(["iperf3", "-s"], stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    (folder / f"ready-{rank}").touch()
    for each in range(int(os.environ["WORLD_SIZE"])):
        wait_for(folder / f"ready-{each}")
    for number, pairs in enumerate(plan["rounds"]):
        for source, target in pairs:
            mark = folder / f"{number}-{source}-{target}.json"
            if source == rank:
                found = measure_one(f"10.86.0.{target + 1}", plan["seconds"])
                part = mark.with_suffix(".part")
                part.write_text(json.dumps(found))
                part.rename(mark)
        for source, target in pairs:
            wait_for(folder / f"{number}-{source}-{target}.json")
    server.kill()


def spread(values):
    """In per cent: the mean of the sizes, and the largest."""
    return f"{100 * statistics.mean(map(abs, values)):.1f} / {100 * max(map(abs, values)):.1f} %"


def hosts_of(program, preset, scale):
    """The cluster of the eight hosts that the lab takes, from the lab's own first line and the whole preset."""
    done = subprocess.run([program, "lab", "--network", preset, "--scale", str(scale), "--workers", str(HOSTS), "--exec", "--",
                           "true"], capture_output=True, text=True, check=True)
    return re.search(r"hosts? \(([^)]*)\)", done.stderr)[1].split(", ")


def links_between(cluster, names, scale=1):
    """gbit and latency_ms for each ordered pair of `names`, as a cluster file says."""
    region = {host["name"]: host["region"] for host in cluster["host"]}
    links = {}
    for hosts in (0, 1, 2):  # a line about hosts counts more than one about regions
        for link in cluster["link"]:
            a, b = link["between"]
            if sum(name in region for name in (a, b)) != hosts:
                continue
            for one, other in itertools.permutations(names, 2):
                for x, y, gbit in [(a, b, link["gbit"]), (b, a, link.get("gbit_back", link["gbit"]))]:
                    if x in (one, region[one]) and y in (other, region[other]):
                        links[one, other] = (gbit / scale, link["latency_ms"])
    return links


def links_of(program, preset, scale, names):
    """What the preset's own cluster file says."""
    with tempfile.TemporaryDirectory() as temporary:
        file = pathlib.Path(temporary) / "cluster.toml"
        subprocess.run([program, "network", "show", preset, "--out", file], capture_output=True, text=True, check=True)
        return links_between(tomllib.loads(file.read_text()), names, scale)


def measure(program, preset, scale, options):
    names = hosts_of(program, preset, scale)
    links = links_of(program, preset, scale, names)
    pairs = list(itertools.permutations(range(len(names)), 2))
    random.Random(15).shuffle(pairs)
    pairs = pairs[:options.pairs] if options.pairs else pairs
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "plan").write_text(json.dumps({"rounds": rounds_of(pairs), "seconds": options.seconds}))
        subprocess.run([program, "lab", "--network", preset, "--scale", str(scale), "--workers", str(HOSTS), "--report",
                        folder / "report", "--exec", "--", sys.executable, __file__, "--inside", folder], check=True,
                       stderr=subprocess.DEVNULL)
        rates, trips = [], []
        for path in folder.glob("*-*-*.json"):
            _, source, target = path.stem.split("-")
            gbit, latency = links[names[int(source)], names[int(target)]]
            found = json.loads(path.read_text())
            rates.append(found["gbit"] / (gbit * PAYLOAD) - 1)
            asked = latency + links[names[int(target)], names[int(source)]][1]
            trips.append((asked, found["rtt_ms"]))
        return links, rates, trips, json.loads((folder / "report").read_text())


def probe(program, preset, scale, links):
    """The same by the program itself."""
    with tempfile.TemporaryDirectory() as temporary:
        out = pathlib.Path(temporary) / "found.toml"
        done = subprocess.run([program, "lab", "--network", preset, "--scale", str(scale), "--", "probe", "--workers", str(HOSTS),
                               "--no-step", "--out", out], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"probe in {preset}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return None
        cluster = tomllib.loads(out.read_text())
    found = links_between(cluster, sorted({name for pair in links for name in pair}))
    rates = [found[pair][0] / gbit - 1 for pair, (gbit, _) in links.items()]
    trips = [(latency + links[pair[::-1]][1], found[pair][1] + found[pair[::-1]][1]) for pair, (_, latency) in links.items()]
    return rates, trips


def trips_cell(trips):
    worst = max(trips, key=lambda trip: abs(trip[1] - trip[0]))
    within = all(abs(found - asked) <= max(0.5, 0.1 * asked) for asked, found in trips)
    return f"{worst[1] - worst[0]:+.2f} ms of {worst[0]:g}{'' if within else ' (!)'}"


def peer(program, options):
    """PyTorch's DDP on four hosts of the widest network, as it is and at two scales."""
    settings = dict(mode="ddp", model="bert", workers=4, layers=2, hidden=128, heads=2, vocab=8000, batch=8, seq=64, steps=8,
                    warmup=2, threads=1, local_steps=8, port=29611, channels=3, side=32, master="")
    script = PEER.format(folder=str(options.peer.parent), options=settings)
    cells = []
    for scale in (1, 10):
        done = subprocess.run([program, "lab", "--network", "worldwide", "--scale", str(scale), "--workers", "4", "--exec", "--",
                               options.python, "-c", script], capture_output=True, text=True, env=peer_environment(""))
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
        if done.returncode != 0 or not rows:
            sys.exit(f"PyTorch's DDP in the lab failed:\n{done.stderr}")
        cells.append(f"{max(row[1] for row in rows):.0f} ms at --scale {scale}")
    return ", ".join(cells)


def main():
    parser = parser_for(__doc__)
    add_peer_options(parser)
    parser.add_argument("--presets", default="")
    parser.add_argument("--pairs", type=int, default=0, help="measure so many pairs (default: all 56)")
    parser.add_argument("--seconds", type=int, default=4, help="of each iperf3, after TCP has reached its rate")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--no-probe", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--inside", type=pathlib.Path, help="used by the benchmark itself")
    options = parser.parse_args()
    if options.inside:
        return inside(options.inside / "plan", options.inside)
    install_guests()
    program = (options.build / "syncopate").resolve()
    lines = ["# The lab against iperf3 and ping", "",
             f"`bench/lab.py`, {HOSTS} hosts of each preset, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start. Errors of "
             f"the rate: mean and worst over the pairs, against the link's rate x {PAYLOAD:.3f} (payload). Round trips: the pair that is "
             "off most; (!) marks more than 0.5 ms and 10 %.", ""]
    lines += heading("network", "links, Mbit/s", "round trips, ms", "pairs", "iperf3: rate off by", "ping: round trip off by",
                     "probe: rate off by", "probe: round trip off by", "packets late, ms: p50 / p99 / max", "trusted")
    for preset in pick(options.presets, ",", PRESETS, "preset"):
        scale = PRESETS[preset]
        links, rates, trips, told = measure(program, preset, scale, options)
        own = None if options.no_probe else probe(program, preset, scale, links)
        speeds, ways = [gbit * 1e3 for gbit, _ in links.values()], [2 * latency for _, latency in links.values()]
        lines.append(row(f"{preset} --scale {scale}", f"{min(speeds):.0f} to {max(speeds):.0f}", f"{min(ways):g} to {max(ways):g}",
                         len(rates), spread(rates), trips_cell(trips), spread(own[0]) if own else "-",
                         trips_cell(own[1]) if own else "-",
                         f"{told['late_ms_p50']:.2f} / {told['late_ms_p99']:.2f} / {told['late_ms_max']:.1f}",
                         "yes" if told["trustworthy"] else "no"))
        print(lines[-1], file=sys.stderr, flush=True)
    if not options.no_peer:
        lines += ["", "PyTorch's DDP (`torch_peer.py`, unchanged, bert-tiny, batch 8 a worker) on four hosts of `worldwide`, per step: "
                  + peer(program, options) + "."]
    report(lines, options.out)


if __name__ == "__main__":
    main()
