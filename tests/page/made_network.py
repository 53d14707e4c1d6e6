#!/usr/bin/env python3
"""Made-up results with networks, predictions and placements, for tests and for looking at the page.

    tests/page/made_network.py PAGE OUT.html [full|advice]
"""
import json
import pathlib
import sys

REGIONS = ["Oregon", "Virginia", "Ohio", "Tokyo", "Seoul", "London", "Frankfurt", "Ireland"]
PLACE = '<script type="application/json" id="results">null</script>'
# name, family, strategy, codec, workers, speed-up, share of exchange, error of the prediction
ARMS = [
    ("single", "single", "single", "none", 1, 1.0, 0.0, None),
    ("ddp", "synchronous", "ddp", "none", 8, 0.31, 0.93, 0.062),
    ("ddp, int8", "compressed", "ddp", "int8", 8, 1.1, 0.8, -0.041),
    ("ddp, power-sgd", "compressed", "ddp", "power-sgd", 8, 2.4, 0.5, 0.132),
    ("all-reduce", "synchronous", "all-reduce", "none", 8, 0.29, 0.94, 0.018),
    ("gather-scatter", "synchronous", "gather-scatter", "none", 8, 0.09, 0.98, -0.27),
    ("local-sgd, every 8", "local", "local-sgd", "none", 8, 2.2, 0.6, 0.034),
    ("diloco, every 64", "local", "diloco", "none", 8, 4.6, 0.15, -0.008),
    ("parameter-server", "asynchronous", "parameter-server", "none", 8, 0.4, 0.9, 0.191),
]


def estimate(values):
    mean = sum(values) / len(values)
    return {"values": values, "mean": mean, "sd": 0.002, "low": mean * 0.99, "high": mean * 1.01, "n": len(values)}


def network_of(hosts_per_region, ring, share, name="worldwide", trustworthy=True):
    """Hosts in eight regions; workers on all, each sending to the next or all to the first."""
    hosts = [{"name": f"{region.lower()}-{i}", "region": region} for region in REGIONS for i in range(hosts_per_region)]
    count = len(hosts)
    pairs = [(i, (i + 1) % count) for i in range(count)] if ring else [pair for i in range(1, count) for pair in ((i, 0), (0, i))]
    links = [{"from": a, "to": b, "latency_ms": 3 if hosts[a]["region"] == hosts[b]["region"] else 20 + (7 * (a + 3 * b)) % 110,
              "gbit": 0.02 if hosts[a]["region"] == hosts[b]["region"] else 0.004 + 0.002 * ((a + b) % 5), "bytes": 4e6 * (1 + (a * 5 + b) % 4 / 3) * share,
              "busy": min(0.97, share * (0.35 + 0.16 * ((a + 2 * b) % 5)))} for a, b in pairs]
    return {"name": name, "scale": 100, "how": "switch", "congestion_control": "cubic", "late_ms_p99": 0.31 if trustworthy else 22.0,
            "trustworthy": trustworthy, "hosts": hosts, "seats": list(range(count)), "links": links}


def arm_of(place, row):
    name, family, strategy, codec, workers, speed, exchange, error = row
    ms = 120 / speed
    parts = {"data": 0.5, "forward": None, "backward": None, "compute": ms * (1 - exchange) - 0.5, "exchange": ms * exchange,
             "optimizer": None, "hidden": ms * exchange * 0.2}
    network = None
    if workers > 1:
        network = network_of(8 if strategy == "all-reduce" else 1, strategy != "gather-scatter", exchange, trustworthy=codec != "power-sgd")
    predicted = error is not None and {
        "ms": ms * (1 + error), "compute_ms": parts["compute"], "exchange_ms": ms * (1 + error) - parts["compute"], "hidden_ms": 0,
        "bytes_per_step": 4e6, "from": "this run", "error": error} or None
    late = network is not None and not network["trustworthy"]
    flags = [{"code": "late", "text": "the machine was too busy to emulate the network in seed 1: its timing does not count"}] if late else []
    return {"id": f"a{place}", "name": name, "family": family, "strategy": strategy, "codec": codec, "workers": workers, "axes": {},
            "settings": {"strategy.name": strategy, "codec.name": codec, "comm.workers": str(workers), "network.name": "worldwide" if workers > 1 else ""},
            "state": "done", "runs": [f"r{place}"], "checks": [], "excluded": False, "flags": flags,
            "quality": estimate([0.8 - 0.004 * (place % 5)]), "difference": None, "quality_at_time": None, "time_to_target": None,
            "speedup": estimate([speed]), "speed_against": "a0", "efficiency": speed / workers, "words": "", "ms": estimate([ms]), "ms_p50": ms,
            "ms_p95": ms * 1.1, "parts": parts, "examples_per_s": estimate([260 * speed]), "train_seconds": estimate([400 / speed]),
            "seconds_per_epoch": None, "examples": 3200, "updates": 100, "global_batch": 32,
            "bytes": {"per_step": 4e6 * exchange, "gradients": 4e6 * exchange, "parameters": 0, "activations": 0, "control": 100, "total_gib": 1},
            "bandwidth": None, "peak_memory": 3e8, "noise_scale": None, "staleness": None, "outside_load": 0.1, "worker_spread": None,
            "price": None, "network": network, "network_name": network and network["name"], "network_scale": network and network["scale"],
            "predicted": predicted, "simulated": False, "pareto": name in ("single", "diloco, every 64"), "tuning": None}


def step(ms, compute):
    return {"ms": ms, "compute_ms": compute, "exchange_ms": ms - compute, "hidden_ms": 0}


def points_of(arms):
    points = [{"series": "run", "name": arm["name"], "family": arm["family"], "network": "worldwide ÷ 100", "arm": arm["id"],
               "predicted": step(arm["predicted"]["ms"], arm["parts"]["compute"]), "measured": step(arm["ms"]["mean"], arm["parts"]["compute"]),
               "error": arm["predicted"]["error"], "why_not": "the machine was too busy to emulate its network" if arm["flags"] else None}
              for arm in arms if arm["predicted"]]
    return points + [{**point, "series": "advice", "arm": None, "predicted": step(point["predicted"]["ms"] * (0.9 + 0.03 * i), 20), "error": 0.05}
                     for i, point in enumerate(points)]


def placement():
    """Eight stages of eight replicas: each region holds one stage, as a good plan has it."""
    return {"format": "syncopate-placement-1", "file": "worldwide.placement.json", "network": "worldwide",
            "stages": [[8 * stage + replica for replica in range(8)] for stage in range(8)],
            "cost_s": 49.218, "data_parallel_s": 22.758, "pipeline_s": 26.46, "random_s": 171.9, "region_blind_s": 96.2,
            "hosts": [{"name": f"{region.lower()}-{i}", "region": region, "devices": 1} for region in REGIONS for i in range(8)],
            "devices": list(range(64)), "regions": REGIONS, "layers": [[3 * stage, 3 * stage + 3] for stage in range(8)],
            "links": [{"from": 8 * stage + i, "to": 8 * stage + 8 + i, "kind": "activations", "bytes": 4e8, "latency_ms": 40, "gbit": 1}
                      for stage in range(7) for i in range(8)] +
                     [{"from": 8 * stage + i, "to": 8 * stage + (i + 1) % 8, "kind": "gradients", "bytes": 6e8, "latency_ms": 1, "gbit": 2}
                      for stage in range(8) for i in range(8)]}


def advice_check(points):
    rows = [{"name": point["name"], "family": point["family"], "workers": 8,
             "predicted": {**point["predicted"], "examples_per_s": 3.2e4 / point["predicted"]["ms"], "bytes_per_step": 4e6},
             "measured": point["measured"], "error": point["error"], "worth_it": point["predicted"]["ms"] < 120,
             "why": "" if point["predicted"]["ms"] < 120 else "sends 4.2 MB a step through 0.004 Gbit/s: slower than one worker"} for point in points]
    return {"format": "syncopate-advice-1", "file": "advice.json", "network": "worldwide", "scale": 100, "task": "supersense", "model": "bert-tiny",
            "global_batch": 32, "rows": sorted(rows, key=lambda row: row["predicted"]["ms"]), "best": 0}


def made():
    arms = [arm_of(i, row) for i, row in enumerate(ARMS)]
    points = points_of(arms)
    text = "{} predictions {} were off by {} % (median) and {} % (90th percentile); {} of them by at most 10 %, {} by at most 20 %."
    return {
        "format": "syncopate-results-1", "title": "A worldwide network (made-up numbers)", "file": "made.toml", "made": "", "program": {"version": "", "commit": ""},
        "state": "finished", "measure": {"name": "accuracy", "label": "accuracy", "percent": True, "higher_is_better": True, "split": "test"},
        "target": None, "baseline": "a0",
        "advice": {"verdict": "best", "sentence": "diloco, every 64 is the best choice here: 4.60x as fast as one worker.", "paragraph": "", "arm": "a7", "rivals": []},
        "notes": [{"code": "network", "text": "Workers sat on the network worldwide ÷ 100.", "severity": "info"}], "common": {}, "varies": ["strategy.name", "codec.name", "comm.workers", "network.name"],
        "arms": arms, "runs": [{"id": arm["runs"][0], "arm": arm["id"], "seed": 1, "kind": "row", "folder": arm["name"], "state": "done", "message": None,
                                "settings": arm["settings"], "quality": arm["quality"]["mean"], "speedup": arm["speedup"]["mean"], "ms": arm["ms"]["mean"],
                                "predicted": arm["predicted"], "curve": None, "evals": None, "progress": None, "command": "", "parts": arm["parts"]} for arm in arms],
        "scaling": {"strong": [], "weak": []},
        "predictions": {"points": points, "errors": [
            {"series": "run", "n": 7, "left_out": 1, "within_10": 5, "within_20": 6, "median": 0.041, "p90": 0.22,
             "text": text.format(7, "made at the runs' ends from their own compute", 4.1, 22.3, 5, 6) + " 1 more was held against a time that does not count."},
            {"series": "advice", "n": 8, "left_out": 0, "within_10": 6, "within_20": 7, "median": 0.05, "p90": 0.18,
             "text": text.format(8, "made by advise before the runs", 5.0, 18.1, 6, 7)}]},
        "placements": [placement()], "advice_check": advice_check(points[len(points) // 2:]), "omitted": {"curves": 0}}


def without_runs():
    """As a folder with an advice.json and a placement, and nothing else."""
    results = made()
    advice = [point for point in results["predictions"]["points"] if point["series"] == "advice"]
    results.update(arms=[], runs=[], baseline=None, notes=[], predictions={"points": advice, "errors": results["predictions"]["errors"][1:]})
    results["advice"].update(verdict="nothing", arm=None, sentence="By prediction diloco, every 64 is the fastest on worldwide ÷ 100: 25.9 ms per iteration.")
    return results


def main():
    page, out = map(pathlib.Path, sys.argv[1:3])
    results = without_runs() if sys.argv[3:] == ["advice"] else made()
    out.write_text(page.read_text().replace(PLACE, PLACE.replace("null", json.dumps(results).replace("<", "\\u003c"))))


if __name__ == "__main__":
    main()
