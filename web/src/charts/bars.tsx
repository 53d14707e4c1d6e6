// Horizontal stacked bars, one row for each arm, on one scale that starts at zero.
import { scaleLinear } from "d3-scale";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { familyClass } from "../families";
import { known } from "../format";
import type { Model } from "../model";
import type { Arm } from "../results";
import type { Sheet } from "../save";
import { mark } from "../tip";
import { ArmTip } from "../tips";
import { XAxis } from "./axes";
import { Drawing, Figure, Swatches } from "./figure";
import { fitted, textWidth } from "./labels";

export interface Segment {
  /** A class name, for the colour. */
  part: string;
  name: string;
  value: number;
}

/** Whose bar it is: an arm, or something that is called like one. */
export type Bar = Pick<Arm, "id" | "name" | "family">;

export interface Row<T extends Bar = Arm> {
  arm: T;
  segments: Segment[];
  /** Drawn as an outline above the bar, on the same scale. */
  outline?: number;
  /** A thin bar below, on the same scale: what was expected. */
  beside?: Segment[];
  /** Written at the bar's end. */
  end: string;
  label: string;
}

interface Props<T extends Bar> {
  id: string;
  title: string;
  lead: ComponentChildren;
  note?: ComponentChildren;
  rows: Row<T>[];
  axis: string;
  /** What the axis counts in: 1024 where values are bytes and it says KiB. */
  unit?: number;
  format: (x: number) => string;
  legend: { part: string; name: string }[];
  sheet: () => Sheet;
  model: Model;
  openArm: (id: string) => void;
  /** What its rows are. */
  many?: string;
}

const fewRows = 16;

function total(segments: Segment[]): number {
  return segments.reduce((sum, segment) => sum + segment.value, 0);
}

export function StackedBars<T extends Bar>({ id, title, lead, note, rows, axis, unit = 1, format, legend, sheet, model, openArm, many = "arms" }: Props<T>) {
  const [all, setAll] = useState(false);
  const best = model.results.advice.arm;
  const shown = all ? rows.slice(0, 200) : rows.slice(0, fewRows);
  const draw = (width: number) => {
    const narrow = width < 560;
    const side = narrow ? 0 : Math.min(width * 0.36, 250, Math.max(...shown.map((row) => textWidth(row.arm.name, 13, 700))) + 12);
    const tail = Math.max(...shown.map((row) => textWidth(row.end, 12))) + 10;
    const step = (narrow ? 44 : 30) + (shown.some((row) => row.beside) ? 7 : 0);
    const top = 4;
    const bottom = top + shown.length * step;
    const most = Math.max(...shown.map((row) => Math.max(total(row.segments), total(row.beside ?? []), row.outline ?? 0)), 1e-9);
    const x = scaleLinear().domain([0, most]).range([side, width - tail]);
    const inUnit = scaleLinear().domain([0, most / unit]).range(x.range());
    return (
      <>
        <Drawing width={width} height={bottom + 42} label={`${title}, ${shown.length} ${many}`}>
          <XAxis scale={inUnit} left={side} right={width - tail} top={top} bottom={bottom} count={narrow ? 4 : 6} format={format} label={axis} />
          {shown.map((row, i) => {
            const y = top + i * step + (narrow ? 18 : 0);
            const arm = model.arm.get(row.arm.id);
            let at = 0;
            let expected = 0;
            return (
              <g
                key={row.arm.id} class={`bar-row ${familyClass(row.arm.family)}`}
                {...mark({ label: row.label, arm: arm?.id, open: arm && (() => openArm(arm.id)), tip: arm ? () => <ArmTip arm={arm} model={model} /> : () => <p>{row.label}</p> })}
              >
                <rect class="row-hit" data-hit x={0} y={top + i * step} width={width} height={step} />
                <text class="name" aria-hidden="true" x={narrow ? 0 : side - 10} y={narrow ? y - 4 : y + 19} text-anchor={narrow ? "start" : "end"} font-weight={row.arm.id === best ? 700 : 400}>
                  {fitted(row.arm.name, narrow ? width : side - 10, 13, row.arm.id === best ? 700 : 400)}
                </text>
                {row.segments.map((segment) => {
                  const from = x(at);
                  at += segment.value;
                  return <rect key={segment.part} class={segment.part} x={from} y={y + 8} width={Math.max(0, x(at) - from)} height={14} />;
                })}
                {known(row.outline) && row.outline > 0 && (
                  <rect class="hidden-part" x={x(0) + 0.75} y={y + 2} width={Math.max(1, x(row.outline) - x(0))} height={5} />
                )}
                {row.beside?.map((segment) => {
                  const from = x(expected);
                  expected += segment.value;
                  return <rect key={segment.part} class={`${segment.part} beside`} x={from} y={y + 24} width={Math.max(0, x(expected) - from)} height={5} />;
                })}
                <text class="context" aria-hidden="true" x={x(Math.max(at, 0)) + 6} y={y + 19}>{row.end}</text>
              </g>
            );
          })}
        </Drawing>
        {rows.length > fewRows && (
          <p><button type="button" class="link" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? `Only the first ${fewRows}` : `Show ${Math.min(rows.length, 200)} of ${rows.length} ${many}`}
          </button></p>
        )}
      </>
    );
  };
  const key = (
    <>
      {lead}
      <Swatches items={legend} />
    </>
  );
  return <Figure id={id} title={title} lead={key} note={note} sheet={sheet} draw={draw} />;
}
