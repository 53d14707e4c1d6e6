// What the small window says of an arm and of a run.
import { known, plural, quality, ratio, halfWidth, seconds, setting, settingName, significant } from "./format";
import type { Model } from "./model";
import type { Arm, Parts, Run, Settings } from "./results";
import { differenceWords, errorText, flagName, networkName, partsOf } from "./words";

function SettingsLine({ settings, varies }: { settings: Settings; varies: string[] }) {
  const shown = varies.filter((name) => name in settings).slice(0, 6);
  if (shown.length === 0) return null;
  return <p class="quiet">{shown.map((name) => `${settingName(name)} ${setting(settings[name])}`).join(" · ")}</p>;
}

function PartsLine({ parts }: { parts: Parts | null }) {
  const list = partsOf(parts).filter(({ ms }) => ms > 0);
  if (list.length === 0) return null;
  return <p class="quiet">{list.map(({ name, ms }) => `${name} ${significant(ms, 2)} ms`).join(" · ")}</p>;
}

export function ArmTip({ arm, model }: { arm: Arm; model: Model }) {
  const measure = model.measureOf(arm);
  const bad = arm.checks.find((check) => !check.ok && !check.differs_by_nature);
  return (
    <>
      <p><b>{arm.name}</b></p>
      <p>
        {measure.label} {quality(arm.quality?.mean, measure)} {halfWidth(arm.quality, measure)} ({plural(arm.runs.length, "seed")})
        {known(arm.speedup?.mean) && `, ${ratio(arm.speedup.mean)} the speed of ${model.unit}`}
      </p>
      {arm.difference && <p>{differenceWords(arm, measure)}</p>}
      {bad && <p class="bad">✗ {bad.text}</p>}
      {arm.flags.length > 0 && <p>⚠ {arm.flags.map((flag) => flagName(flag.code)).join(", ")}</p>}
      {networkName(arm) && <p class="quiet">on {networkName(arm)}</p>}
      <SettingsLine settings={arm.settings} varies={model.results.varies} />
      <PartsLine parts={arm.parts} />
      {known(arm.predicted?.ms) && <p class="quiet">predicted {significant(arm.predicted.ms)} ms ({errorText(arm.predicted.error)})</p>}
    </>
  );
}

export function RunTip({ run, arm, model }: { run: Run; arm: Arm | undefined; model: Model }) {
  const measure = model.measureOf(arm);
  return (
    <>
      <p><b>{arm?.name ?? run.folder}</b>, seed {setting(run.seed)}</p>
      <p>
        {measure.label} {quality(run.quality, measure)}{known(run.speedup) && `, ${ratio(run.speedup)}`}
        {known(run.train_seconds) && `, trained ${seconds(run.train_seconds)}`}
      </p>
      {run.collapsed && <p class="bad">✗ collapsed</p>}
      <SettingsLine settings={run.settings} varies={model.results.varies} />
      <PartsLine parts={run.parts} />
    </>
  );
}
