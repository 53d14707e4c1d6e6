// Makes up results for work on the page and for its test. Every number is invented, and the title says so.
//   node sample.mjs KIND            prints results.json
//   node sample.mjs KIND FILE       writes dist/page.html with them inside
// KIND: full, undecided, perplexity, running, failed, empty, hostile, huge
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

let state = 20240;
const uniform = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
const normal = () => Math.sqrt(-2 * Math.log(uniform() + 1e-9)) * Math.cos(6.2831853 * uniform());

const student = [NaN, NaN, 12.71, 4.3, 3.18, 2.78, 2.57];
function estimate(values) {
  const known = values.filter((v) => v !== null);
  const n = known.length;
  const mean = n ? known.reduce((a, b) => a + b, 0) / n : null;
  const sd = n > 1 ? Math.sqrt(known.reduce((a, b) => a + (b - mean) ** 2, 0) / (n - 1)) : null;
  const half = sd === null ? null : ((student[n] ?? 2) * sd) / Math.sqrt(n);
  return { values, mean, sd, low: half === null ? null : mean - half, high: half === null ? null : mean + half, n };
}

// name, family, strategy, codec, workers, every, quality, speed-up, exchange ms, bytes per step
const plan = [
  ["single", "single", "single", "none", 1, null, 0.742, 1.0, 0, 0],
  ["ddp, 2 workers", "synchronous", "ddp", "none", 2, null, 0.743, 1.62, 4.1, 4.4e6],
  ["ddp, 4 workers", "synchronous", "ddp", "none", 4, null, 0.741, 2.71, 5.2, 6.6e6],
  ["all-reduce, 4 workers", "synchronous", "all-reduce", "none", 4, null, 0.742, 2.2, 8.8, 6.6e6],
  ["ddp + int8, 4 workers", "compressed", "ddp", "int8", 4, null, 0.74, 3.12, 2.4, 1.7e6],
  ["ddp + top-k 1 %, 4 workers", "compressed", "ddp", "top-k", 4, null, 0.722, 3.05, 2.9, 0.2e6],
  ["local-sgd, every 8", "local", "local-sgd", "none", 4, 8, 0.735, 3.41, 1.1, 0.8e6],
  ["local-sgd, every 64", "local", "local-sgd", "none", 4, 64, 0.716, 3.72, 0.3, 0.1e6],
  ["diloco, every 20", "local", "diloco", "none", 4, 20, 0.729, 3.6, 0.5, 0.33e6],
  ["async server, 4 workers", "asynchronous", "async", "none", 4, null, 0.707, 3.3, 1.9, 4.4e6],
  ["hogwild, 4 workers", "asynchronous", "hogwild", "none", 4, null, 0.699, 3.66, 0.2, 0],
  ["ddp, 2 stages, ac-sgd", "pipeline", "ddp", "none", 4, null, 0.741, 1.9, 6.1, 0.9e6],
  ["gather-scatter, 4 workers", "synchronous", "gather-scatter", "none", 4, null, 0.741, 0.83, 21, 13e6],
];

function curveOf(seed, final, seconds, examples, offset) {
  const points = 120;
  const curve = { examples: [], seconds: [], loss: [] };
  for (let i = 1; i <= points; ++i) {
    const t = i / points;
    curve.examples.push(Math.round(examples * t));
    curve.seconds.push(seconds * t);
    curve.loss.push(0.9 + offset + 2.6 * Math.exp(-4 * t) + 0.04 * normal());
  }
  const evals = { examples: [], seconds: [], quality: [], split: "validation" };
  for (let i = 1; i <= 12; ++i) {
    const t = i / 12;
    evals.examples.push(Math.round(examples * t));
    evals.seconds.push(seconds * t);
    evals.quality.push(final * (1 - 0.75 * Math.exp(-4.2 * t)) + 0.004 * normal());
  }
  return { curve, evals };
}

function pipelineOf(ms, exchange) {
  const stage = (i) => {
    const work = { forward_ms: ms * (i === 0 ? 0.17 : 0.2), backward_ms: ms * (i === 0 ? 0.33 : 0.38), coding_ms: ms * 0.02, optimizer_ms: ms * 0.04 };
    const waiting = { waiting_forward_ms: i === 0 ? 0 : ms * 0.11, waiting_backward_ms: i === 0 ? ms * 0.2 : 0, sending_ms: 0, exchange_ms: exchange, data_ms: 0.2 };
    const busy = Object.values(work).reduce((a, b) => a + b, 0);
    const other_ms = Math.max(0, ms - busy - Object.values(waiting).reduce((a, b) => a + b, 0));
    return { ranks: [i, i + 2], blocks: i === 0 ? 3 : 2, ms, ...work, ...waiting, other_ms, bubble: 1 - busy / ms,
      bytes_forward: i === 0 ? 0.21e6 : 0, bytes_backward: i === 0 ? 0 : 0.4e6, bytes_gradients: i === 0 ? 1.9e6 : 0.8e6, bytes_tied: 0,
      bits_forward: i === 0 ? 4.4 : null, bits_backward: i === 0 ? null : 8.1, error_forward: i === 0 ? 0.021 : null, error_backward: i === 0 ? null : 0.006 };
  };
  return { replicas: 2, schedule: "1f1b", micro_batches: 8, cut: "3,2", activation_codec: "ac-sgd", coded_evaluations: false, stages: [stage(0), stage(1)] };
}

function build({ rows = plan, seeds = [1, 2, 3, 4, 5], title = "Which way of synchronising is best here?", curves = true }) {
  const arms = [];
  const runs = [];
  rows.forEach(([name, family, strategy, codec, workers, every, q, s, exchange, sent], a) => {
    const ids = [];
    const examples = name.includes("cheats") ? 2400 : 120000;
    const seconds = 412 / s;
    const ms = 44 / s;
    const parts = { data: 0.4, forward: (ms - exchange) * 0.28, backward: (ms - exchange) * 0.55, compute: ms - exchange - 0.4,
      exchange, optimizer: (ms - exchange) * 0.15, hidden: strategy === "ddp" && workers > 1 ? exchange * 1.6 : 0 };
    const settings = { "strategy.name": strategy, "codec.name": codec, "comm.workers": workers, "strategy.every": every ?? undefined, "optim.lr": [0.001, 0.002, 0.004][a % 3] };
    const qs = [];
    const ss = [];
    seeds.forEach((seed, k) => {
      const id = `r${a}-${k}`;
      const collapsed = name === "hogwild, 4 workers" && k === 2;
      const quality = collapsed ? q - 0.045 : q + 0.0035 * normal();
      const speed = a === 0 ? 1 + 0.004 * normal() : s * (1 + 0.018 * normal());
      ids.push(id);
      qs.push(quality);
      ss.push(speed);
      runs.push({ id, arm: `a${a}`, seed, kind: "row", folder: `supersense-bert-tiny-${strategy}-${workers}w-${(a * 7919 + k).toString(16).padStart(8, "0")}`,
        state: "done", message: "", settings: { ...settings, "train.seed": seed }, quality, loss: 0.95, speedup: speed, ms: ms * (1 + 0.01 * normal()), examples_per_s: 290 * speed,
        train_seconds: 412 / speed, examples, steps: examples / 32, bytes_per_step: sent, outside_load: 0.05, peak_memory: 310e6 + workers * 8e6, collapsed, reused: k === 0,
        parts, command: `syncopate train --task supersense --model bert-tiny --strategy ${strategy} --workers ${workers} --seed ${seed}`, host: "sample", cpu: "Sample CPU", cores: 8, threads: 1,
        date: "2026-01-02T03:04:05Z", version: "0.0.0", commit: "0000000", start_hash: "5a5a5a5a", data_hash: "a5a5a5a5", progress: null,
        ...(curves ? curveOf(seed, quality, 412 / speed, examples, (0.742 - q) * 3) : { curve: null, evals: null }) });
    });
    const quality = estimate(qs);
    const speedup = estimate(ss);
    const d = estimate(qs.map((v, k) => v - runs[k].quality));
    const decided = d.low !== null && (d.low > 0 || d.high < 0);
    const cheats = name.includes("cheats");
    const checks = [
      { code: "examples", ok: !cheats, text: cheats ? "It consumed 2,400 examples where the others consumed 120,000." : "It consumed 120,000 examples, as the others did.", differs_by_nature: false },
      { code: "start", ok: true, text: "Its first parameters are those of the others.", differs_by_nature: false },
      { code: "evaluation", ok: true, text: "It was scored on the same 5,000 examples.", differs_by_nature: false },
      { code: "machine", ok: true, text: "It ran on the same machine.", differs_by_nature: false },
      { code: "updates", ok: family !== "asynchronous", text: family === "asynchronous" ? "It made 15,000 updates where the others made 3,750." : "It made 3,750 updates, as the others did.", differs_by_nature: family === "asynchronous" },
    ];
    const flags = [];
    if (qs.some((v) => v < q - 0.04)) flags.push({ code: "collapsed", text: "Seed 3 ended 4.5 points below the mean of the others." });
    if (family === "asynchronous") flags.push({ code: "other-updates", text: "It made 4 times the updates of the baseline." });
    if (s < 1) flags.push({ code: "slower", text: "It is slower than one worker." });
    if (name.includes("every 64")) flags.push({ code: "rate-at-edge", text: "Its best rate, 0.004, is the highest that was tried." });
    if (a > 0 && !decided && seeds.length > 1) flags.push({ code: "undecided", text: "Its difference from one worker is within the noise of the seeds." });
    arms.push({ id: `a${a}`, name, family, strategy, codec, workers, axes: every ? { "strategy.every": String(every) } : {}, settings, state: "done", runs: ids, checks, excluded: cheats, flags,
      quality, difference: a === 0 || seeds.length < 2 ? null : { ...d, decided, better: decided ? d.mean > 0 : null, seeds_needed: decided ? null : 14, against: "a0" },
      quality_at_time: { seconds: 112, estimate: estimate(qs.map((v) => v * (1 - 0.75 * Math.exp(-4.2 * Math.min(1, s / 3.7))))) },
      time_to_target: q > 0.72 ? { estimate: estimate(seeds.map(() => (300 / s) * (1 + 0.05 * normal()))), reached: seeds.length, of: seeds.length } : { estimate: estimate(seeds.map(() => null)), reached: 0, of: seeds.length },
      speedup, efficiency: s / workers, words: s < 1 ? "slower than one worker (0.83x)" : a === 0 ? "the baseline" : `${s.toFixed(1)}x faster than one worker`,
      ms: estimate(seeds.map(() => ms * (1 + 0.01 * normal()))), ms_p50: ms * 0.98, ms_p95: ms * 1.2, parts, examples_per_s: estimate(ss.map((v) => 290 * v)), train_seconds: estimate(ss.map((v) => 412 / v)),
      seconds_per_epoch: seconds / 4, examples, updates: family === "asynchronous" ? 15000 : 3750, global_batch: family === "asynchronous" ? 8 : 32,
      bytes: { per_step: sent, gradients: family === "local" ? 0 : sent * 0.999, parameters: family === "local" ? sent * 0.999 : 0, activations: 0, control: sent * 0.001, total_gib: (sent * 3750) / 2 ** 30 },
      bandwidth: sent > 0 ? { algorithm_gbit: 0.31 * (exchange / 5), bus_gbit: 0.46 * (exchange / 5), link_gbit: 1, utilisation: Math.min(1, 0.46 * (exchange / 5)) } : null,
      peak_memory: 310e6 + workers * 8e6, noise_scale: 84, staleness: family === "asynchronous" ? [900, 2200, 6100, 5000, 800] : null, outside_load: 0.05,
      pipeline: family === "pipeline" ? pipelineOf(ms, exchange) : null,
      worker_spread: family === "local" ? { low: q - 0.01, high: q + 0.004 } : null, price: null, pareto: false,
      tuning: { best: settings["optim.lr"], edge: name.includes("every 64") ? "high" : null, values: [0.0005, 0.001, 0.002, 0.004].map((value) => ({ value, mean: q - 0.012 * Math.abs(Math.log2(value / settings["optim.lr"])) - 0.002 })) } });
  });
  const honest = arms.filter((arm) => !arm.excluded);
  for (const arm of honest) arm.pareto = !honest.some((other) => other.quality.mean > arm.quality.mean && other.speedup.mean > arm.speedup.mean);
  const point = (arm) => ({ arm: arm.id, workers: arm.workers, examples_per_s: arm.examples_per_s.mean, speedup: arm.speedup.mean });
  return {
    format: "syncopate-results-1", title: `${title} (made-up numbers)`, file: "experiments/sample.toml", made: "2026-01-02T05:00:00Z", program: { version: "0.0.0", commit: "sample" }, state: "finished",
    measure: { name: "accuracy", label: "accuracy", percent: true, higher_is_better: true, split: "test" }, target: { measure: "accuracy", value: 0.7 }, baseline: "a0",
    advice: { verdict: "best", sentence: "ddp with int8 on 4 workers is the best choice here: 3.1x faster than one worker, nothing lost (difference −0.2 ± 0.4 points, 5 seeds).",
      paragraph: "Where speed matters more, local-sgd every 8 steps is 3.4x faster and loses 0.7 ± 0.4 points. Hogwild and the asynchronous server are no faster than that and lose more. 14 seeds would tell int8 from plain ddp.", arm: "a4", rivals: ["a2"] },
    notes: [{ code: "busy", text: "Other programs kept 0.6 cores busy while 3 of 60 runs trained: their times may be too long.", severity: "warning" }],
    common: { "task.name": "supersense", "model.name": "bert-tiny", "train.global_batch": 32, "train.epochs": 4, "optim.name": "adamw", "optim.schedule": "linear", "optim.warmup": 0.1, "task.max_length": 48, "compute.threads": 1, "compute.device": "cpu", "compute.precision": "fp32", "optim.clip": 0.5, "model.dropout": 0 },
    varies: ["strategy.name", "codec.name", "comm.workers", "strategy.every", "optim.lr", "train.seed"],
    arms, runs, scaling: { strong: honest.filter((arm) => ["single", "ddp"].includes(arm.strategy) && arm.codec === "none").map(point), weak: [] }, omitted: { curves: 0 },
  };
}

const cheat = ["local-sgd that cheats", "local", "local-sgd", "none", 4, 8, 0.31, 40, 0.1, 0.8e6];
const kinds = {
  full: () => build({ rows: [...plan, cheat] }),
  undecided: () => {
    const results = build({ rows: plan.slice(0, 5), seeds: [1, 2] });
    results.advice = { verdict: "undecided", sentence: "Undecided between ddp with int8 and ddp on 4 workers: 3 more seeds would tell.", paragraph: "Both are at least 2.6x faster than one worker.", arm: null, rivals: ["a4", "a2"] };
    return results;
  },
  perplexity: () => {
    const results = build({ rows: plan.slice(0, 8), seeds: [1, 2, 3] });
    const turn = (q) => (q === null ? null : 60 - 50 * q);
    const turned = (e) => e && { ...e, values: e.values.map(turn), mean: turn(e.mean), low: turn(e.high), high: turn(e.low), sd: e.sd === null ? null : e.sd * 50 };
    results.measure = { name: "perplexity", label: "perplexity", percent: false, higher_is_better: false, split: "test" };
    results.target = { measure: "perplexity", value: 25 };
    for (const arm of results.arms) {
      arm.quality = turned(arm.quality);
      arm.quality_at_time.estimate = turned(arm.quality_at_time.estimate);
      if (arm.difference) for (const key of ["mean", "low", "high"]) arm.difference[key] *= -50;
      for (const each of arm.tuning.values) each.mean = turn(each.mean);
      arm.price = { value: 0.04 * arm.workers / arm.speedup.mean, currency: "USD" };
    }
    for (const run of results.runs) {
      run.quality = turn(run.quality);
      run.evals.quality = run.evals.quality.map(turn);
    }
    results.scaling.weak = results.scaling.strong.map((point) => ({ ...point, speedup: point.speedup * 1.1 }));
    return results;
  },
  running: () => {
    const results = build({ rows: plan.slice(0, 7), seeds: [1, 2, 3] });
    results.state = "running";
    results.advice = { verdict: "nothing", sentence: "12 of 21 runs are done: too early to tell.", paragraph: "", arm: null, rivals: [] };
    results.runs.forEach((run, i) => {
      if (i < 12) return;
      run.state = i < 14 ? "running" : "planned";
      Object.assign(run, { quality: null, speedup: null, train_seconds: null, evals: null });
      if (i < 14) {
        for (const key of ["examples", "seconds", "loss"]) run.curve[key].length = 50;
        run.progress = { step: 1562, of: 3750, seconds_left: 83, losses_by_worker: [1.31, 1.29, 1.34, 1.3], updates_by_worker: [390, 402, 388, 382], bytes_per_s: 31e6 };
      } else run.curve = null;
    });
    for (const arm of results.arms.slice(4)) Object.assign(arm, { state: arm.id === "a4" ? "running" : "planned", quality: null, difference: null, speedup: null, efficiency: null, words: "", quality_at_time: null, time_to_target: null, checks: [], flags: [], pareto: false, ms: null, parts: null, examples_per_s: null, train_seconds: null, bytes: null, bandwidth: null, tuning: null, peak_memory: null, noise_scale: null });
    return results;
  },
  failed: () => {
    const results = build({ rows: plan.slice(0, 2), seeds: [1] });
    for (const arm of results.arms) Object.assign(arm, { state: "failed", quality: null, difference: null, speedup: null, efficiency: null, words: "", quality_at_time: null, time_to_target: null, ms: null, parts: null, examples_per_s: null, train_seconds: null, bytes: null, bandwidth: null, tuning: null, pareto: false, flags: [{ code: "failed", text: "Its only run failed." }], checks: [] });
    for (const run of results.runs) Object.assign(run, { state: "failed", message: "The data file /data/train.tsv is not there: give its path with data.", quality: null, speedup: null, train_seconds: null, curve: null, evals: null, loss: null, ms: null, parts: null, examples_per_s: null });
    results.scaling.strong = [];
    results.advice = { verdict: "nothing", sentence: "None of the 2 runs finished, so there is nothing to compare.", paragraph: "", arm: null, rivals: [] };
    return results;
  },
  empty: () => ({ ...build({ rows: plan.slice(0, 1), seeds: [1] }), arms: [], runs: [], scaling: { strong: [], weak: [] }, advice: { verdict: "nothing", sentence: "There are no runs in this folder.", paragraph: "", arm: null, rivals: [] }, notes: [] }),
  hostile: () => {
    const results = build({ rows: plan.slice(0, 4), seeds: [1, 2] });
    const evil = `<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>`;
    results.title += evil;
    results.file = evil;
    results.arms[1].name = evil;
    results.arms[2].name = '=HYPERLINK("http://x.invalid","click")';
    results.arms[3].name = `${"a very long name without any break ".repeat(5).replaceAll(" ", "")} مرحبا 你好 \u202e`;
    results.advice.sentence += evil;
    results.common["task.text"] = evil;
    results.arms[1].flags.push({ code: evil, text: evil });
    results.arms[1].family = evil;
    for (const run of results.runs) Object.assign(run, { command: `syncopate train --text '${evil}'`, folder: evil, host: evil, message: evil });
    return results;
  },
  huge: () => {
    const rows = Array.from({ length: 2000 }, (_, i) => {
      const [name, ...rest] = plan[i % plan.length];
      rest[5] -= 0.06 * uniform();
      rest[6] *= 0.6 + 0.6 * uniform();
      return [i === 0 ? name : `${name}, point ${i}`, ...rest];
    });
    return build({ rows, title: "10,000 runs", curves: false });
  },
};

const [kind = "full", file] = process.argv.slice(2);
if (!kinds[kind]) {
  console.error(`there is no sample "${kind}": choose ${Object.keys(kinds).join(", ")}`);
  process.exit(2);
}
const text = JSON.stringify(kinds[kind]()).replaceAll("<", "\\u003c");
if (file === undefined) process.stdout.write(text);
else {
  const page = readFileSync(join(import.meta.dirname, "dist/page.html"), "utf8");
  const place = '<script type="application/json" id="results">null</script>';
  if (page.split(place).length !== 2) throw new Error("dist/page.html has not exactly one place for the results");
  writeFileSync(file, page.replace(place, () => place.replace("null", () => text)));
}
