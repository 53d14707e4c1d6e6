// The table: sorted, filtered, paged; one row per arm that opens into its seeds.
import { useMemo, useState } from "preact/hooks";
import { columnsOf, mostVarying, varying, type Column } from "./columns";
import { families, familyOf } from "./families";
import { count, plural, setting, settingName } from "./format";
import type { Model } from "./model";
import type { Arm, Family } from "./results";
import { Shape } from "./shape";
import { mark } from "./tip";
import { ArmTip } from "./tips";
import { flagName, stateName } from "./words";

const pageSize = 50;
const mostSeeds = 40;

function searched(arm: Arm): string {
  return [
    arm.name, arm.family, arm.strategy, arm.codec, arm.state, ...arm.flags.map((flag) => flagName(flag.code)),
    ...Object.entries(arm.settings).map(([name, value]) => `${settingName(name)} ${setting(value)}`),
  ].join(" ").toLowerCase();
}

function compare(a: number | string | null, b: number | string | null, up: boolean): number {
  const missingA = a === null || a === undefined || Number.isNaN(a);
  const missingB = b === null || b === undefined || Number.isNaN(b);
  if (missingA || missingB) return Number(missingA) - Number(missingB); // last, whichever way
  const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  return up ? order : -order;
}

function cellClass({ number, minor }: Pick<Column, "number" | "minor">): string {
  return `${number ? "number" : ""} ${minor ? "minor" : ""}`.trim();
}

interface Props {
  model: Model;
  openArm: (id: string) => void;
  openRun: (id: string) => void;
}

export function ArmTable({ model, openArm, openRun }: Props) {
  const [sort, setSort] = useState<{ key: string; up: boolean } | null>(null);
  const [text, setText] = useState("");
  const [hiddenFamilies, setHidden] = useState<ReadonlySet<Family>>(new Set());
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [page, setPage] = useState(0);
  const columns = useMemo(() => columnsOf(model), [model]);
  const words = useMemo(() => new Map(model.arms.map((arm) => [arm.id, searched(arm)])), [model]);
  const present = useMemo(() => [...new Set(model.arms.map((arm) => familyOf(arm.family)))], [model]);

  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const filtered = model.arms.filter((arm) =>
    !hiddenFamilies.has(familyOf(arm.family)) && wanted.every((word) => words.get(arm.id)?.includes(word)));
  const by: Pick<Column, "sort"> | undefined =
    sort?.key === "name" ? { sort: (arm) => arm.name } : columns.find((column) => column.key === sort?.key);
  const rows = sort && by ? [...filtered].sort((a, b) => compare(by.sort(a), by.sort(b), sort.up)) : filtered;
  const pages = Math.max(1, Math.ceil(rows.length / pageSize));
  const at = Math.min(page, pages - 1);
  const visible = rows.slice(at * pageSize, (at + 1) * pageSize);

  const sortBy = (key: string, number: boolean) => {
    setPage(0);
    setSort(sort?.key === key ? { key, up: !sort.up } : { key, up: !number });
  };
  const toggle = <T,>(set: ReadonlySet<T>, value: T): ReadonlySet<T> => {
    const next = new Set(set);
    if (!next.delete(value)) next.add(value);
    return next;
  };
  const head = (key: string, name: string, number: boolean, unit?: string, minor?: boolean) => (
    <th key={key} scope="col" class={cellClass({ number, minor })} aria-sort={sort?.key === key ? (sort.up ? "ascending" : "descending") : "none"}>
      <button type="button" class="sort" data-sort={key} onClick={() => sortBy(key, number)}>
        {name}{unit && <span class="quiet">, {unit}</span>}
        <span class="arrow" aria-hidden="true">{sort?.key === key ? (sort.up ? "▲" : "▼") : ""}</span>
      </button>
    </th>
  );

  return (
    <section class="wide" aria-labelledby="table-title">
      <h2 id="table-title" tabIndex={-1}>All numbers</h2>
      <Common model={model} />
      <div class="controls">
        <label>
          Filter
          <input
            type="search" id="filter" value={text} placeholder="name, setting, flag"
            onInput={(event) => { setText(event.currentTarget.value); setPage(0); }}
          />
        </label>
        {present.length > 1 && (
          <fieldset>
            <legend>Families</legend>
            {present.map((family) => (
              <button
                key={family} type="button" class="toggle" aria-pressed={!hiddenFamilies.has(family)} data-family={family}
                onClick={() => { setHidden(toggle(hiddenFamilies, family)); setPage(0); }}
              >
                <Shape family={family} /> {families[family].label}
              </button>
            ))}
          </fieldset>
        )}
        <p class="quiet" role="status">
          {rows.length === model.arms.length ? plural(rows.length, "arm") : `${count(rows.length)} of ${plural(model.arms.length, "arm")}`}, {plural(model.results.runs.length, "run")}
        </p>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="The table, which scrolls sideways">
        <table class="arms">
          <thead>
            <tr>
              {head("name", "name", false)}
              {columns.map((column) => head(column.key, column.head, column.number, column.unit, column.minor))}
            </tr>
          </thead>
          <tbody>
            {visible.map((arm) => (
              <ArmRows
                key={arm.id} arm={arm} model={model} columns={columns} open={open.has(arm.id)} openArm={openArm} openRun={openRun}
                toggle={() => setOpen(toggle(open, arm.id))}
              />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length === 0 && <p class="empty-row">No arm has all of “{text}”. <button type="button" class="link" onClick={() => { setText(""); setHidden(new Set()); }}>Show all</button></p>}
      {pages > 1 && <Pager at={at} pages={pages} turn={setPage} />}
    </section>
  );
}

export function Pager({ at, pages, turn }: { at: number; pages: number; turn: (page: number) => void }) {
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={at === 0} onClick={() => turn(at - 1)}>Back</button>
      <span>Page {count(at + 1)} of {count(pages)}</span>
      <button type="button" disabled={at + 1 >= pages} onClick={() => turn(at + 1)}>Next</button>
    </nav>
  );
}

function ArmRows({ arm, model, columns, open, toggle, openArm, openRun }: Props & {
  arm: Arm;
  columns: Column[];
  open: boolean;
  toggle: () => void;
}) {
  const runs = open ? model.runsOf(arm) : [];
  const { onMouseEnter, onMouseLeave } = mark({ label: arm.name, arm: arm.id, tip: () => <ArmTip arm={arm} model={model} /> });
  return (
    <>
      <tr class={`arm-row ${arm.excluded ? "excluded" : ""} ${arm.id === model.results.advice.arm ? "best" : ""}`} data-row={arm.id}>
        <th scope="row">
          <span class="row-name">
            <button
              type="button" class="opener" aria-expanded={open} aria-label={`${open ? "Close" : "Open"} the seeds of ${arm.name}`} onClick={toggle}
            >
              {open ? "▾" : "▸"}
            </button>
            <Shape family={arm.family} />
            <button type="button" class="link arm-name" onClick={() => openArm(arm.id)} onMouseEnter={onMouseEnter} onMouseLeave={onMouseLeave}>
              {arm.name}
            </button>
            {arm.state !== "done" && <span class="state">{stateName(arm.state)}</span>}
          </span>
        </th>
        {columns.map((column) => {
          const content = column.cell(arm);
          return <td key={column.key} class={cellClass(column)} data-head={column.head}>{content && <div>{content}</div>}</td>;
        })}
      </tr>
      {runs.slice(0, mostSeeds).map((run) => (
        <tr key={run.id} class="seed-row">
          <th scope="row"><button type="button" class="link" onClick={() => openRun(run.id)}>seed {setting(run.seed)}</button>{run.state !== "done" && <span class="state">{stateName(run.state)}</span>}</th>
          {columns.map((column) => (
            <td key={column.key} class={cellClass(column)} data-head={column.head}>{column.seed && <div>{column.seed(run, arm)}</div>}</td>
          ))}
        </tr>
      ))}
      {runs.length > mostSeeds && (
        <tr class="seed-row"><th scope="row" colSpan={columns.length + 1}>and {runs.length - mostSeeds} more seeds, in results.csv</th></tr>
      )}
    </>
  );
}

const mostCommon = 8;
const tellingFirst = ["task.name", "model.name", "train.global_batch", "train.epochs", "optim.name", "optim.lr", "compute.device", "compute.threads"];

/** What all runs share, in one line; the rest of it opens. */
function Common({ model }: { model: Model }) {
  const [open, setOpen] = useState(false);
  const { common } = model.results;
  const names = Object.keys(common).filter((name) => common[name] !== "");
  const telling = [...tellingFirst.filter((name) => names.includes(name)), ...names.filter((name) => !tellingFirst.includes(name))];
  const shown = open ? telling : telling.slice(0, mostCommon);
  const others = varying(model).length - mostVarying;
  return (
    <div class="common">
      {names.length > 0 && (
        <p>
          <b>The same in every run:</b>{" "}
          {shown.map((name) => `${settingName(name)} ${setting(common[name])}`).join(", ")}
          {names.length > mostCommon && (
            <>{" "}<button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "fewer" : `and ${names.length - mostCommon} more`}</button></>
          )}
        </p>
      )}
      {others > 0 && <p class="quiet">{plural(others, "more setting differs", "more settings differ")}: each arm’s own window lists them.</p>}
    </div>
  );
}
