#!/usr/bin/env python3
"""Drives the page in Debian's Chromium: a report from disk, and the live page during a real run.

    tests/page/test_page.py --program build/syncopate --page web/dist/page.html
"""
import argparse
import csv
import http.server
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, ink, wait_for  # noqa: E402
import made_network  # noqa: E402

PLACE = '<script type="application/json" id="results">null</script>'
HOSTILE = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>'
CHARTS = ["picture", "time", "quality-curves", "loss-curves", "bytes"]
EXPERIMENT = f"""
title = "A page for {HOSTILE.replace('"', chr(92) + '"')}"
[settings]
task = "supersense"
model = "bert-tiny"
limit = 128
"task.test_limit" = 64
max_length = 16
global_batch = 32
steps = 4
eval_every = 2
threads = 1
[axes]
seed = [1, 2]
[[row]]
strategy = "single"
workers = 1
[[row]]
name = "{HOSTILE.replace('"', chr(92) + '"')}"
strategy = "ddp"
workers = 2
"""
options = None


def with_results(page, results):
    """As the program does it: nothing from a file can become markup."""
    assert page.count(PLACE) == 1
    return page.replace(PLACE, PLACE.replace("null", json.dumps(results).replace("<", "\\u003c")))


class Made:
    """A report of real runs, made once: page.html and what it shows."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="syncopate-report-"))
        self.bare = pathlib.Path(options.page).read_text()
        self.page = self.folder / "page.html"
        if options.results:
            self.results = json.loads(pathlib.Path(options.results).read_text())
            self.page.write_text(with_results(self.bare, self.results))
            return
        runs = self.folder / "runs"
        (self.folder / "experiment.toml").write_text(EXPERIMENT)
        call("compare", self.folder / "experiment.toml", "--out", runs)
        call("report", runs, "--out", self.page)
        self.results = json.loads((runs / "results.json").read_text())

    def write(self, name, results):
        path = self.folder / name
        path.write_text(with_results(self.bare, results))
        return path.as_uri()


def call(*arguments):
    done = subprocess.run([options.program, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"syncopate {arguments[0]} ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


def setUpModule():
    """One browser and one report for all: to make them takes longer than to use them."""
    Page.made = Made()
    unittest.addModuleCleanup(shutil.rmtree, Page.made.folder, True)
    Page.browser = Browser()
    unittest.addModuleCleanup(Page.browser.close)


class Page(unittest.TestCase):

    def setUp(self):
        self.browser.size(1440)
        self.browser.log("performance")
        self.browser.log("browser")

    def tearDown(self):
        faults = [entry["message"] for entry in self.browser.log("browser") if entry["level"] == "SEVERE"]
        self.assertEqual(faults, [], "the console has errors")
        self.assertIsNone(self.browser.run("return window.hacked ?? null"), "a name became markup")

    def show(self, address=None):
        self.browser.open(address or self.made.page.as_uri())
        wait_for("the page", lambda: self.browser.run("return document.querySelector('main') !== null"))

    def text(self, selector):
        return self.browser.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def column(self, key):
        """What the table shows in a column, top to bottom."""
        return self.browser.run(
            """const heads = [...document.querySelectorAll('.arms thead th')];
            const at = heads.findIndex((head) => head.querySelector(`[data-sort="${arguments[0]}"]`));
            return [...document.querySelectorAll('.arm-row')].map((row) => row.children[at].textContent.trim());""", key)

    def saved(self, chart, kind):
        self.browser.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", f"#{chart} .tools button",
                         ("svg", "png", "csv").index(kind))
        return self.browser.downloaded(f"syncopate-{chart}.{kind}")

    def requested(self):
        """The addresses of all requests since the log was last read."""
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.log("performance")]
        return [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]


class Report(Page):
    def test_opens_from_disk_without_a_request(self):
        self.show()
        asked = [url for url in self.requested() if not url.startswith("data:")]
        self.assertEqual(asked, [self.made.page.as_uri()])
        self.assertTrue(self.text(".sentence"))
        # The foil: the log does see a request, and the policy refuses it.
        self.browser.run("fetch('http://127.0.0.1:9/').catch(() => {}); new Image().src = 'http://127.0.0.1:9/x.png';")
        refused = wait_for("a refusal", lambda: [e for e in self.browser.log("browser") if "Content Security Policy" in e["message"]])
        self.assertTrue(refused)

    def test_charts_are_drawn(self):
        self.show()
        drawn = self.browser.run("return [...document.querySelectorAll('figure.chart')].map((each) => each.id)")
        for chart in CHARTS:
            self.assertIn(chart, drawn)
            covered, colours = ink(self.browser.picture(f"#{chart} .plot svg"))
            self.assertGreater(covered, 0.005, chart)
            self.assertGreater(colours, 4, chart)
        # The foil: an empty drawing is told from a chart.
        self.browser.run("document.querySelector('#picture .plot svg').replaceChildren()")
        self.assertLess(ink(self.browser.picture("#picture .plot svg"))[0], 0.005)

    def test_every_arm_is_a_point_and_every_seed_a_dot(self):
        self.show()
        shown = [arm for arm in self.made.results["arms"] if arm["quality"] and arm["speedup"]]
        points = self.browser.run("return [...document.querySelectorAll('[data-point]')].map((each) => each.dataset.point)")
        self.assertCountEqual(points, [arm["id"] for arm in shown])
        seeds = sum(len(arm["runs"]) for arm in shown if not arm["excluded"])
        self.assertEqual(self.browser.run("return document.querySelectorAll('#picture .seed').length"), seeds)

    def test_sorts_and_filters(self):
        self.show()
        names = [arm["name"] for arm in self.made.results["arms"]]
        self.assertEqual(self.browser.run("return document.querySelectorAll('.arm-row').length"), len(names))
        self.browser.click('[data-sort="speedup"]')
        down = self.column("speedup")
        self.browser.click('[data-sort="speedup"]')
        up = self.column("speedup")
        self.assertEqual(up, down[::-1])
        self.assertNotEqual(up, down)
        self.assertEqual(self.browser.run("return document.querySelector('[data-sort=speedup]').closest('th').ariaSort"), "ascending")
        self.browser.type("#filter", "ddp")
        few = self.browser.run("return [...document.querySelectorAll('.arm-row')].map((row) => row.dataset.row)")
        self.assertTrue(0 < len(few) < len(names))
        self.browser.run("document.querySelector('#filter').value = ''; document.querySelector('#filter').dispatchEvent(new Event('input'))")
        self.browser.click('[data-family="single"]')
        families = {arm["id"]: arm["family"] for arm in self.made.results["arms"]}
        left = self.browser.run("return [...document.querySelectorAll('.arm-row')].map((row) => row.dataset.row)")
        self.assertCountEqual(left, [arm for arm, family in families.items() if family != "single"])

    def test_a_row_opens_into_its_seeds_and_a_seed_into_its_run(self):
        self.show()
        self.assertEqual(self.browser.run("return document.querySelectorAll('.seed-row').length"), 0)
        arm = self.made.results["arms"][0]
        self.browser.click(f'[data-row="{arm["id"]}"] .opener')
        self.assertEqual(self.browser.run("return document.querySelectorAll('.seed-row').length"), len(arm["runs"]))
        self.browser.click(".seed-row button")
        run = next(run for run in self.made.results["runs"] if run["id"] == arm["runs"][0])
        wait_for("the window", lambda: self.browser.run("return document.querySelector('dialog').open"))
        self.assertIn(run["command"], self.text("dialog"))
        self.assertIn(run["folder"], self.text("dialog"))
        self.browser.press("Escape")
        wait_for("the window to close", lambda: not self.browser.run("return document.querySelector('dialog').open"))

    def test_saves_each_chart(self):
        for chart in CHARTS:
            self.show()  # anew: of quick downloads from one document the browser drops the eleventh
            kept = {kind: self.saved(chart, kind) for kind in ("svg", "png", "csv")}
            svg = xml.etree.ElementTree.fromstring(kept["svg"])
            self.assertEqual(svg.tag, "{http://www.w3.org/2000/svg}svg")
            self.assertGreater(len(list(svg.iter())), 20)
            self.assertNotIn("class", {key for element in svg.iter() for key in element.attrib})
            self.assertEqual(kept["png"][:8], b"\x89PNG\r\n\x1a\n")
            rows = list(csv.reader(io.StringIO(kept["csv"].decode())))
            self.assertGreater(len(rows), 1)
            self.assertEqual({len(row) for row in rows}, {len(rows[0])})
        seeds = list(csv.DictReader(io.StringIO(self.browser.downloaded("syncopate-picture.csv").decode())))
        self.assertEqual(len(seeds), sum(len(arm["runs"]) for arm in self.made.results["arms"]))

    def test_themes_differ(self):
        paper = {}
        for scheme in ("light", "dark"):
            self.browser.devtools("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            self.show()
            paper[scheme] = self.browser.run("return getComputedStyle(document.body).backgroundColor")
        self.assertNotEqual(paper["light"], paper["dark"])
        self.browser.run("document.querySelector('.themes input[value=light]').click()")  # against the system
        wait_for("the theme", lambda: self.browser.run("return getComputedStyle(document.body).backgroundColor") == paper["light"])
        self.browser.run("document.querySelector('.themes input[value=auto]').click()")
        self.browser.devtools("Emulation.setEmulatedMedia", {"features": []})

    def test_fits_every_width(self):
        for width in (320, 360, 820, 1440):
            self.browser.size(width)
            self.show()
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
            self.assertGreater(self.browser.run("return document.querySelector('#picture svg').getBoundingClientRect().width"), width * 0.4)

    def test_keyboard_reaches_points_and_opens_them(self):
        self.show()
        reached = set()
        for _ in range(80):
            self.browser.press("Tab")
            point = self.browser.run("return document.activeElement.dataset?.point ?? null")
            if point:
                reached.add(point)
                if len(reached) == 2:
                    break
        self.assertEqual(len(reached), 2)
        self.assertTrue(self.text(".tip"))
        self.browser.press("Enter")
        wait_for("the window", lambda: self.browser.run("return document.querySelector('dialog').open"))
        arm = next(arm for arm in self.made.results["arms"] if arm["id"] == point)
        self.assertIn(arm["name"], self.text("#details-title"))
        self.browser.press("Escape")
        self.assertEqual(self.browser.run("return document.activeElement.dataset.point"), point)

    def test_each_chart_has_its_numbers_as_a_table(self):
        self.show()
        for chart in CHARTS:
            self.browser.click(f"#{chart} .behind")
            self.assertGreater(self.browser.run("return document.querySelectorAll(arguments[0]).length", f"#{chart} .sheet tbody tr"), 0)
        unnamed = self.browser.run(
            """return [...document.querySelectorAll('button, input, svg [tabindex], svg[role]')].filter((each) =>
                !each.getAttribute('aria-label') && !each.textContent.trim() && !each.labels?.length).length""")
        self.assertEqual(unnamed, 0)

    def test_hostile_names_stay_text(self):
        results = json.loads(json.dumps(self.made.results))
        results["title"] = results["file"] = HOSTILE
        results["advice"].update(sentence=HOSTILE, paragraph=HOSTILE + " ")
        results["notes"] = [{"code": HOSTILE, "text": HOSTILE, "severity": "warning"}]
        results["common"][HOSTILE] = HOSTILE
        for arm in results["arms"]:
            arm.update(name=HOSTILE + arm["id"], family=HOSTILE, strategy=HOSTILE, checks=[], flags=[{"code": HOSTILE, "text": HOSTILE}])
        for run in results["runs"]:
            run.update(command=HOSTILE, folder=HOSTILE, host=HOSTILE, message=HOSTILE)
        self.show(self.made.write("hostile.html", results))
        for selector in ("h1", ".sentence", ".arm-name", ".chip"):
            self.assertIn(HOSTILE, self.text(selector))
        self.browser.click(".arm-name")
        self.assertEqual(self.browser.run("return document.querySelectorAll('#page img, #page script').length"), 0)
        self.browser.size(360)
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 360)

    def test_stages_have_a_bar_each(self):
        results = json.loads(json.dumps(self.made.results))
        self.show(self.made.write("whole.html", results))
        self.assertFalse(self.browser.run("return document.querySelector('#stages') !== null"), "no stages, no panel")
        times = {"forward_ms": 8, "backward_ms": 16, "coding_ms": 1, "optimizer_ms": 2, "waiting_forward_ms": 6, "waiting_backward_ms": 0,
                 "sending_ms": 0, "exchange_ms": 9, "data_ms": 0.5, "other_ms": 0.5}
        sent = {"bytes_forward": 4e5, "bytes_backward": 0, "bytes_gradients": 2e6, "bytes_tied": 0}
        stages = [{"ranks": [i], "blocks": 2 - i, "ms": 43, "bubble": 0.37, **times, **sent, "bits_forward": 4.25, "bits_backward": None,
                   "error_forward": 0.02, "error_backward": None} for i in range(2)]
        results["arms"][1]["pipeline"] = {"replicas": 1, "schedule": "gpipe", "micro_batches": 8, "cut": "2,1", "activation_codec": "ac-sgd",
                                          "coded_evaluations": False, "stages": stages}
        self.show(self.made.write("stages.html", results))
        names = "return [...document.querySelectorAll(arguments[0] + ' .bar-row .name')].map((each) => each.textContent)"
        self.assertEqual(self.browser.run(names, "#stages"), ["stage 0, 2 blocks", "stage 1, 1 block"])
        self.assertEqual(self.browser.run(names, "#stage-bytes"), ["stage 0, 2 blocks", "stage 1, 1 block"])
        self.assertIn("43.0 ms, idle 37", self.text("#stages"))
        self.assertIn("8 micro-batches a step, gpipe", self.text("#stages"))
        self.assertIn("waiting for other stages 6.0 ms", self.browser.run("return document.querySelector('#stages .bar-row').ariaLabel"))

    def test_empty_and_failed_say_so(self):
        results = json.loads(json.dumps(self.made.results))
        results.update(arms=[], runs=[], scaling={"strong": [], "weak": []})
        results["advice"].update(sentence="There is nothing here.", paragraph="", arm=None, rivals=[])
        self.show(self.made.write("empty.html", results))
        self.assertIn("There is nothing here.", self.text("main"))
        self.show(self.made.write("bare.html", None))
        self.assertIn("syncopate report", self.text("main"))
        results = json.loads(json.dumps(self.made.results))
        for arm in results["arms"]:
            arm.update({key: None for key in arm if isinstance(arm[key], (dict, float))}, state="failed", settings={}, axes={})
        for run in results["runs"]:
            run.update(state="failed", message="The disk is full.", quality=None, curve=None, evals=None, parts=None)
        self.show(self.made.write("failed.html", results))
        self.assertIn("The disk is full.", self.text("main"))

    def test_ten_thousand_runs_stay_usable(self):
        results = json.loads(json.dumps(self.made.results))
        arms, runs = results["arms"][:], results["runs"][:]
        results["arms"], results["runs"] = [], []
        wanted = 10_000 // sum(len(arm["runs"]) for arm in arms)
        by_id = {run["id"]: run for run in runs}
        for copy in range(wanted):
            for arm in arms:
                ids = [f"{run}-{copy}" for run in arm["runs"]]
                results["arms"].append({**arm, "id": f"{arm['id']}-{copy}", "name": f"{arm['name']} {copy}", "runs": ids, "pareto": False})
                results["runs"] += [{**by_id[run], "id": new, "arm": f"{arm['id']}-{copy}", "curve": None, "evals": None}
                                    for run, new in zip(arm["runs"], ids)]
        results["advice"].update(arm=None, rivals=[])
        results["baseline"] = None
        began = time.monotonic()
        self.show(self.made.write("huge.html", results))
        wait_for("the table", lambda: self.browser.run("return document.querySelectorAll('.arm-row').length") == 50)
        loaded = time.monotonic() - began
        took = self.browser.run(
            """const before = performance.now();
            document.querySelector('[data-sort="speedup"]').click();
            return new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now() - before))));""")
        print(f"10,000 runs: opened in {loaded:.1f} s, sorted in {took:.0f} ms", file=sys.stderr)
        self.assertLess(self.browser.run("return document.querySelectorAll('*').length"), 20_000)


class Networks(Page):
    """A worldwide network, eight arms with predictions and a placement of eight stages by eight replicas, made up."""

    @classmethod
    def setUpClass(cls):
        cls.results = made_network.made()
        cls.address = cls.made.write("network.html", cls.results)

    def count(self, selector):
        return self.browser.run("return document.querySelectorAll(arguments[0]).length", selector)

    def choose(self, arm):
        self.browser.run("const box = document.querySelector('#network select'); box.value = arguments[0]; box.dispatchEvent(new Event('change'))", arm)
        wait_for("the arm", lambda: self.browser.run("return document.querySelector('#network select').value") == arm)

    def test_the_map_has_every_host_and_used_link(self):
        self.show(self.address)
        arm = next(arm for arm in self.results["arms"] if arm["id"] == self.results["advice"]["arm"])
        self.assertEqual(self.count("#network .host"), len(arm["network"]["hosts"]))
        self.assertEqual(self.count("#network .link"), len(arm["network"]["links"]))
        covered, colours = ink(self.browser.picture("#network .plot svg"))
        self.assertGreater(covered, 0.01)
        self.assertGreater(colours, 4)
        # A thicker line carries more.
        widths = dict(self.browser.run("return [...document.querySelectorAll('#network .link')].map((each) => [each.dataset.link, Number(each.querySelector('.wire').getAttribute('stroke-width'))])"))
        ordered = [widths[f"{link['from']}-{link['to']}-"] for link in sorted(arm["network"]["links"], key=lambda link: link["bytes"])]
        self.assertEqual(ordered, sorted(ordered))
        self.assertLess(ordered[0], ordered[-1])
        # Many hosts: from region to region, and both ends of a line say what it carried.
        self.choose("a4")
        wait_for("64 hosts", lambda: self.count("#network .host") == 64)
        self.assertEqual(self.count("#network .link"), 8)
        self.assertIn("Oregon to Virginia", self.browser.run("return document.querySelector('#network .link[data-link^=\"0-1-\"]').ariaLabel"))
        self.browser.run("document.querySelector('#network .link').focus()")
        self.assertRegex(self.text(".tip"), r"MiB per step.*busy.*ms one way.*Gbit/s")

    def test_an_untrustworthy_network_is_told(self):
        self.show(self.address)
        self.assertNotIn("do not count", self.text("#network .note"))
        self.choose("a3")
        wait_for("the warning", lambda: "do not count" in self.text("#network .note"))
        self.assertIn("network emulated late", self.text(".arms"))

    def test_predicted_stands_against_measured(self):
        self.show(self.address)
        points = self.results["predictions"]["points"]
        self.assertEqual(self.count("#predictions .mean"), len(points))
        self.assertEqual(self.count("#predictions .mean.excluded"), sum(1 for point in points if point["why_not"]))
        for errors in self.results["predictions"]["errors"]:
            self.assertIn(errors["text"], self.text("#predictions .note"))
        # Above the diagonal where the prediction was too slow, below it where it was too fast.
        spots = self.browser.run(
            """return [...document.querySelectorAll('#predictions [data-prediction=run]')].map((each) => {
                const line = each.parentNode.querySelector('.ideal');
                const [x0, y0, x1, y1] = ['x1', 'y1', 'x2', 'y2'].map((name) => Number(line.getAttribute(name)));
                const [, x, y] = each.getAttribute('transform').match(/([\\d.]+),([\\d.]+)/).map(Number);
                return [each.ariaLabel, y0 + ((x - x0) / (x1 - x0)) * (y1 - y0) - y];
            });""")
        errors = {arm["name"]: arm["predicted"]["error"] for arm in self.results["arms"] if arm["predicted"]}
        self.assertEqual(len(spots), len(errors))
        for label, above in spots:
            error = errors[label.split(":")[0]]
            self.assertEqual(above > 0, error > 0, label)
        self.assertEqual(self.count("#time .beside"), 2 * len(errors) + 1)  # two parts each, and the legend's
        self.assertEqual(self.column("error")[1], "+6.2 %")
        self.assertEqual(self.column("network")[:2], ["–", "worldwide ÷ 100"])

    def test_few_predictions_are_a_table(self):
        results = json.loads(json.dumps(self.results))
        results["predictions"]["points"] = results["predictions"]["points"][:2]
        self.show(self.made.write("few.html", results))
        self.assertEqual(self.count("#predictions svg"), 0)
        self.assertEqual(self.count("#predictions tbody tr"), 2)

    def test_a_placement_shows_its_stages(self):
        self.show(self.address)
        self.assertEqual(self.count("#placement-0 .host"), 64)
        marks = self.browser.run("return [...document.querySelectorAll('#placement-0 .host')].map((each) => [each.dataset.host, each.textContent])")
        self.assertEqual({mark for _, mark in marks}, set("01234567"))
        stages = self.results["placements"][0]["stages"]
        for host, mark in marks:
            self.assertIn(int(host), stages[int(mark)])
        self.assertEqual(self.count("#placement-0 .flow-activations.link"), 7)
        self.browser.click("#placement-0 .behind")
        self.assertEqual(self.count("#placement-0 .sheet tbody tr"), 64)

    def test_drawings_are_saved_and_fit(self):
        for chart in ("network", "predictions", "placement-0"):
            self.show(self.address)
            svg = xml.etree.ElementTree.fromstring(self.saved(chart, "svg"))
            self.assertGreater(len(list(svg.iter())), 20)
            self.assertGreater(len(self.saved(chart, "csv").splitlines()), 7)
        for width in (320, 820):
            self.browser.size(width)
            self.show(self.address)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)

    def test_a_folder_without_runs_has_the_drawings(self):
        results = made_network.without_runs()
        self.show(self.made.write("advice.html", results))
        self.assertIn("By prediction", self.text(".sentence"))
        drawn = self.browser.run("return [...document.querySelectorAll('.chart')].map((each) => each.id)")
        self.assertEqual(drawn, ["placement-0", "predictions", "advice-time"])
        self.assertEqual(self.count("#advice tbody tr"), len(results["advice_check"]["rows"]))
        self.assertIn("slower than one worker", self.text("#advice"))

    def test_hostile_names_stay_text(self):
        results = json.loads(json.dumps(self.results).replace("Oregon", "REGION").replace("worldwide", "NETWORK")
                             .replace("REGION", json.dumps(HOSTILE)[1:-1]).replace("NETWORK", json.dumps(HOSTILE)[1:-1]))
        self.show(self.made.write("hostile-network.html", results))
        self.assertIn(HOSTILE, self.browser.run("return document.querySelector('#network .region').ariaLabel"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('#page img, #page script').length"), 0)


class Bundle(unittest.TestCase):
    def test_a_changed_source_is_noticed(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        sys.path.insert(0, str(root / "tools"))
        from check_web import faults_in
        self.assertEqual(list(faults_in(root)), [])
        copy = Page.made.folder / "copy"
        shutil.copytree(root / "web", copy / "web", ignore=shutil.ignore_patterns("node_modules"))
        self.assertEqual(list(faults_in(copy)), [])
        with open(copy / "web" / "src" / "main.tsx", "a") as source:
            source.write("\n")
        self.assertIn("older than its sources", " ".join(faults_in(copy)))


class Feed(http.server.ThreadingHTTPServer):
    """Serves the page and its events as `syncopate watch` does, and can hang up."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, page, port=0):
        self.page = page.replace("<head>", '<head><meta name="syncopate-live" content="events">')
        self.news = threading.Condition()
        self.results = None
        self.ended = False
        super().__init__(("127.0.0.1", port), FeedHandler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def send(self, results):
        with self.news:
            self.results = json.dumps(results)
            self.news.notify_all()

    def hang_up(self):
        with self.news:
            self.ended = True
            self.news.notify_all()
        self.shutdown()
        self.server_close()


class FeedHandler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        if self.path != "/events":
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(self.server.page.encode())
            return
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        sent = None
        while not self.server.ended:
            with self.server.news:
                if self.server.results == sent:
                    self.server.news.wait(1)
                    continue
                sent = self.server.results
            self.wfile.write(f"event: results\ndata: {sent}\n\n".encode())
            self.wfile.flush()


class Live(Page):
    def tearDown(self):
        # A lost connection is in the console, as it should be.
        faults = [entry["message"] for entry in self.browser.log("browser")
                  if entry["level"] == "SEVERE" and "ERR_" not in entry["message"]]
        self.assertEqual(faults, [])

    def test_updates_in_place_and_survives_a_lost_connection(self):
        results = json.loads(json.dumps(self.made.results))
        results["state"] = "running"
        feed = Feed(self.made.bare)
        port = feed.server_address[1]
        self.browser.open(f"http://127.0.0.1:{port}/")
        wait_for("the waiting page", lambda: "Waiting" in self.text("main"))
        feed.send(results)
        wait_for("the first results", lambda: self.text(".sentence") != "")
        arm = results["arms"][0]
        self.browser.click(f'[data-row="{arm["id"]}"] .opener')
        self.browser.type("#filter", "si")
        self.browser.run("document.querySelector('[data-row] .opener').focus(); window.kept = document.activeElement; window.at = window.kept.getBoundingClientRect().top")
        before = self.browser.run("return [...document.querySelectorAll('#loss-curves .mean-line')].map((each) => each.getAttribute('d'))")
        results["advice"]["sentence"] = "Something new."
        for run in results["runs"]:
            for values in (run["curve"] or {}).values():
                values.append(values[-1] * 1.1)
        feed.send(results)
        wait_for("the news", lambda: "Something new." in self.text(".sentence"))
        after = self.browser.run("return [...document.querySelectorAll('#loss-curves .mean-line')].map((each) => each.getAttribute('d'))")
        self.assertNotEqual(before, after)
        # Whatever grew or shrank above, what the reader looks at stays where it was.
        self.assertTrue(self.browser.run("return document.activeElement === window.kept"))
        wait_for("the row to stand still", lambda: abs(self.browser.run("return window.kept.getBoundingClientRect().top - window.at")) < 2)
        self.assertEqual(self.browser.run("return document.querySelector('#filter').value"), "si")
        self.assertGreater(self.browser.run("return document.querySelectorAll('.seed-row').length"), 0)
        self.assertRegex(self.text(".live"), r"live.*updated \d+ s ago")
        feed.hang_up()
        wait_for("the loss to be said", lambda: "connection lost" in self.text(".live"))
        feed = Feed(self.made.bare, port)
        results["advice"]["sentence"] = "Back again."
        feed.send(results)
        wait_for("the new connection", lambda: "Back again." in self.text(".sentence"), 15)
        self.assertNotIn("connection lost", self.text(".live"))
        feed.hang_up()

    def test_follows_a_real_run(self):
        if options.results:
            self.skipTest("without the program")
        runs = self.made.folder / "live"
        runs.mkdir()
        train = subprocess.Popen(
            [options.program, "train", "--task", "supersense", "--model", "bert-tiny", "--strategy", "ddp", "--workers", "2",
             "--set", "task.limit=2000", "--set", "task.test_limit=64", "--global-batch", "32", "--steps", "4000", "--seed", "1",
             "--out", str(runs / "one")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        watch = None
        try:
            wait_for("the run to begin", (runs / "one" / "spec.json").exists, 25)
            watch = subprocess.Popen([options.program, "watch", str(runs), "--port", "0"], stdout=subprocess.PIPE, text=True)
            address = next((found[0] for line in watch.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+/", line))), None)
            self.assertIsNotNone(address, "watch printed no address")
            self.browser.open(address)
            step = lambda: int((re.search(r"step ([\d,]+) of", self.text(".going")) or ["", "0"])[1].replace(",", ""))
            first = wait_for("the first steps", step, 25)
            wait_for("further steps", lambda: step() > first, 20)
            self.assertIsNone(train.poll(), "the run ended before it was seen")
            wait_for("a curve", lambda: self.browser.run("return document.querySelectorAll('#loss-curves .mean-line').length"), 10)
        finally:
            for process in filter(None, (watch, train)):
                process.terminate()
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait(5)
            if watch:
                watch.stdout.close()


def main():
    global options
    parser = argparse.ArgumentParser(description="Drives the page in Chromium.")
    parser.add_argument("--program", help="syncopate, which trains the runs and makes the page")
    parser.add_argument("--page", required=True, help="web/dist/page.html")
    parser.add_argument("--results", help="a results.json to show instead of runs of the program")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
