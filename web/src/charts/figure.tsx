// The frame of every chart: what it says, the drawing, how to keep it, and the numbers behind it.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { significant } from "../format";
import { savePng, saveCsv, saveSvg, type Cell, type Sheet } from "../save";

interface Props {
  id: string;
  title: string;
  lead?: ComponentChildren;
  note?: ComponentChildren;
  sheet: () => Sheet;
  /** Draws for a width in pixels. */
  draw: (width: number) => ComponentChildren;
  class?: string;
}

export function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { box, width };
}

function shownCell(cell: Cell): string {
  return typeof cell === "number" ? significant(cell, 4) : (cell ?? "–");
}

const mostRows = 300;

export function SheetTable({ sheet, label }: { sheet: Sheet; label: string }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class="sheet">
        <thead>
          <tr>{sheet.header.map((name) => <th scope="col">{name}</th>)}</tr>
        </thead>
        <tbody>
          {sheet.rows.slice(0, mostRows).map((row) => (
            <tr>{row.map((cell) => <td class={typeof cell === "number" ? "number" : ""}>{shownCell(cell)}</td>)}</tr>
          ))}
        </tbody>
      </table>
      {sheet.rows.length > mostRows && <p class="quiet">The CSV has the other {sheet.rows.length - mostRows} rows.</p>}
    </div>
  );
}

export function Figure({ id, title, lead, note, sheet, draw, class: extra }: Props) {
  const { box, width } = useWidth();
  const [open, setOpen] = useState(false);
  const svg = () => box.current?.querySelector("svg") ?? null;
  const keep = (save: (name: string, drawing: SVGSVGElement) => unknown) => () => {
    const drawing = svg();
    if (drawing) void save(`syncopate-${id}`, drawing);
  };
  return (
    <figure class={`chart ${extra ?? ""}`} id={id} aria-labelledby={`${id}-title`}>
      <figcaption>
        <h2 id={`${id}-title`}>{title}</h2>
        {lead && <p class="lead">{lead}</p>}
      </figcaption>
      <div class="plot" ref={box}>{width > 0 && draw(width)}</div>
      {note && <div class="quiet note">{note}</div>}
      <div class="tools">
        <span aria-hidden="true">Save as</span>
        <button type="button" onClick={keep(saveSvg)} aria-label={`Save “${title}” as SVG`}>SVG</button>
        <button type="button" onClick={keep(savePng)} aria-label={`Save “${title}” as PNG`}>PNG</button>
        <button type="button" onClick={() => saveCsv(`syncopate-${id}`, sheet())} aria-label={`Save the data of “${title}” as CSV`}>CSV</button>
        <button type="button" class="behind" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Hide the numbers" : "Show the numbers"}
        </button>
      </div>
      {open && <SheetTable sheet={sheet()} label={`The numbers of “${title}”`} />}
    </figure>
  );
}

/** What colours mean. */
export function Swatches({ items }: { items: { part: string; name: ComponentChildren }[] }) {
  return (
    <span class="swatches" role="list">
      {items.map(({ part, name }) => <span key={part} role="listitem"><i class={part} />{name}</span>)}
    </span>
  );
}

/** An SVG whose unit is the pixel that it was drawn for; it shrinks with the page in print. */
export function Drawing({ width, height, label, children }: {
  width: number;
  height: number;
  label: string;
  children: ComponentChildren;
}) {
  return (
    <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="group" aria-label={label}>
      {children}
    </svg>
  );
}
