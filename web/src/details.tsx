// The window that a point or a name opens: an arm with its checks and seeds, or one run.
import { useEffect, useRef } from "preact/hooks";
import { bytes, capital, count, halfWidth, known, percent, plural, quality, ratio, seconds, setting, significant } from "./format";
import type { Model } from "./model";
import type { Arm } from "./results";
import { Facts, RunCard, SettingsTable } from "./run";
import { Shape } from "./shape";
import { checkName, differenceWords, errorText, flagName, networkName, partsOf, runName, stateName } from "./words";

export interface Opened {
  kind: "arm" | "run";
  id: string;
}

interface Props {
  model: Model;
  opened: Opened | null;
  close: () => void;
  openRun: (id: string) => void;
  openArm: (id: string) => void;
}

export function Details({ model, opened, close, openRun, openArm }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = box.current;
    if (opened && dialog && !dialog.open) dialog.showModal();
    if (!opened && dialog?.open) dialog.close();
    dialog?.scrollTo(0, 0);
  }, [opened]);
  const arm = opened?.kind === "arm" ? model.arm.get(opened.id) : undefined;
  const run = opened?.kind === "run" ? model.run.get(opened.id) : undefined;
  const armOfRun = run && model.arm.get(run.arm);
  return (
    <dialog
      ref={box} aria-labelledby="details-title" onClose={close}
      onClick={(event) => { if (event.target === box.current) close(); }}
    >
      {(arm || run) && (
        <div class="details">
          <header>
            <h2 id="details-title">
              <Shape family={(arm ?? armOfRun)?.family ?? "control"} /> {arm ? arm.name : run && runName(run, armOfRun)}
            </h2>
            <button type="button" class="close" onClick={close} aria-label="Close">✕</button>
          </header>
          {arm && <ArmCard arm={arm} model={model} openRun={openRun} />}
          {run && armOfRun && <p><button type="button" class="link" onClick={() => openArm(armOfRun.id)}>All seeds of {armOfRun.name}</button></p>}
          {run && <RunCard run={run} arm={armOfRun} model={model} />}
        </div>
      )}
    </dialog>
  );
}

function networkWords(arm: Arm): string | null {
  const network = arm.network;
  if (!network) return networkName(arm);
  const regions = new Set(network.hosts.map((host) => host.region)).size;
  const how = network.how === "real" || arm.simulated ? "" : `, emulated (${[network.how, network.congestion_control].filter(Boolean).join(", ")})`;
  const late = known(network.late_ms_p99) ? `, packets at most ${significant(network.late_ms_p99, 2)} ms late (99 %)` : "";
  return `${networkName(arm)}: ${plural(network.hosts.length, "host")} in ${plural(regions, "region")}${how}${late}`;
}

function ArmCard({ arm, model, openRun }: { arm: Arm; model: Model; openRun: (id: string) => void }) {
  const measure = model.measureOf(arm);
  const q = arm.quality;
  const total = known(arm.bytes?.total_gib) ? arm.bytes.total_gib * 1024 ** 3 : null;
  return (
    <>
      {arm.words && <p class="words">{capital(arm.words)}{arm.words.endsWith(".") ? "" : "."}</p>}
      <Facts
        facts={[
          [measure.label, `${quality(q?.mean, measure)} ${halfWidth(q, measure)}`],
          ["standard deviation over seeds", known(q?.sd) ? (measure.percent ? `${significant(q.sd * 100, 2)} points` : significant(q.sd, 2)) : null],
          ["against the baseline", differenceWords(arm, measure)],
          [`${measure.label} at ${seconds(arm.quality_at_time?.seconds)}`, arm.quality_at_time ? quality(arm.quality_at_time.estimate.mean, measure) : null],
          ["speed-up", ratio(arm.speedup?.mean)], ["efficiency", percent(arm.efficiency)],
          ["training time", seconds(arm.train_seconds?.mean)], ["seconds per epoch", seconds(arm.seconds_per_epoch)],
          ["ms per iteration", `${significant(arm.ms?.mean)}${known(arm.ms_p95) ? ` (p50 ${significant(arm.ms_p50)}, p95 ${significant(arm.ms_p95)})` : ""}`],
          ["of which", partsOf(arm.parts).map(({ name, ms }) => `${name} ${significant(ms, 2)}`).join(", ")],
          ["predicted", known(arm.predicted?.ms) ? `${significant(arm.predicted.ms)} ms (${errorText(arm.predicted.error)}): compute ${significant(arm.predicted.compute_ms, 2)}, exchange ${significant(arm.predicted.exchange_ms, 2)}` : null],
          ["network", networkWords(arm)],
          ["examples/s", significant(arm.examples_per_s?.mean)],
          ["examples, updates", known(arm.examples) ? `${count(arm.examples)} in ${count(arm.updates)} updates of ${count(arm.global_batch)}` : null],
          ["sent per step", bytes(arm.bytes?.per_step)], ["sent by all workers", bytes(total)],
          ["bandwidth", arm.bandwidth ? `${significant(arm.bandwidth.algorithm_gbit, 2)} Gbit/s algorithm, ${significant(arm.bandwidth.bus_gbit, 2)} bus${known(arm.bandwidth.utilisation) ? `, ${percent(arm.bandwidth.utilisation)} of the link` : ""}` : null],
          ["peak memory", bytes(arm.peak_memory)],
          ["gradient noise scale", known(arm.noise_scale) ? `${significant(arm.noise_scale, 2)} examples` : null],
          ["workers apart at the end", arm.worker_spread ? `${quality(arm.worker_spread.low, measure)} to ${quality(arm.worker_spread.high, measure)}` : null],
          ["price", arm.price ? `${significant(arm.price.value)} ${arm.price.currency}` : null],
        ]}
      />
      {arm.flags.length > 0 && (
        <>
          <h3>Flags</h3>
          <ul class="plain">{arm.flags.map((flag) => <li><b>⚠ {flagName(flag.code)}</b>: {flag.text}</li>)}</ul>
        </>
      )}
      {arm.checks.length > 0 && (
        <>
          <h3>Checks</h3>
          <ul class="plain">
            {arm.checks.map((check) => (
              <li class={check.ok || check.differs_by_nature ? "" : "bad"}>
                <b>{check.known === false ? "?" : check.ok ? "✓" : check.differs_by_nature ? "≠" : "✗"} {checkName(check.code)}</b>: {check.text}
              </li>
            ))}
          </ul>
        </>
      )}
      {arm.staleness && arm.staleness.length > 0 && <Staleness counts={arm.staleness} />}
      <h3>What differs</h3>
      <SettingsTable settings={arm.settings} />
      <h3>{plural(arm.runs.length, "run")}</h3>
      <ul class="plain">
        {model.runsOf(arm).slice(0, 100).map((run) => (
          <li key={run.id}>
            <button type="button" class="link" onClick={() => openRun(run.id)}>seed {setting(run.seed)}</button>{" "}
            {quality(run.quality, measure)}, {seconds(run.train_seconds)}{run.state !== "done" && `, ${stateName(run.state)}`}
            {run.collapsed && <b class="bad"> collapsed</b>}
          </li>
        ))}
      </ul>
    </>
  );
}

/** How many updates others had made since a gradient's parameters were read. */
function Staleness({ counts }: { counts: number[] }) {
  const all = counts.reduce((sum, each) => sum + each, 0);
  if (all === 0) return null;
  return (
    <>
      <h3>Staleness of updates</h3>
      <ul class="bars">
        {counts.slice(0, 16).map((each, i) => (
          <li key={i}><span>{i}</span><meter min={0} max={all} value={each}>{percent(each / all)}</meter><span>{percent(each / all)}</span></li>
        ))}
      </ul>
    </>
  );
}
