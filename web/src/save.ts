// Saves a chart as SVG or PNG and its data as CSV.

export type Cell = string | number | null;

/** The data behind a chart: shown as a table, saved as CSV. */
export interface Sheet {
  header: string[];
  rows: Cell[][];
}

function download(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// A spreadsheet takes a cell that begins like a formula for one; names come from files.
function csvCell(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv(sheet: Sheet): string {
  return [sheet.header, ...sheet.rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
}

export function saveCsv(name: string, sheet: Sheet): void {
  download(`${name}.csv`, new Blob([toCsv(sheet)], { type: "text/csv" }));
}

const painted = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linejoin",
  "stroke-linecap", "opacity", "font-family", "font-size", "font-weight", "font-style", "text-anchor",
  "dominant-baseline", "text-decoration-line", "paint-order",
];

/** A copy that needs no style sheet: attributes are read by every program that draws SVG. */
function standalone(svg: SVGSVGElement): SVGSVGElement {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll<SVGElement>("*")];
  const to = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  from.forEach((element, i) => {
    const target = to[i];
    if (!target) return;
    const style = getComputedStyle(element);
    for (const property of painted) {
      const name = property === "text-decoration-line" ? "text-decoration" : property;
      const value = style.getPropertyValue(property);
      if (value && value !== "none" && value !== "normal" && value !== "auto") target.setAttribute(name, value);
      else if (property === "fill" || property === "stroke") target.setAttribute(name, "none");
    }
    for (const name of ["class", "style", "tabindex", "role", "data-arm", "data-key"]) target.removeAttribute(name);
  });
  for (const hit of copy.querySelectorAll("[data-hit]")) hit.remove();
  const { width, height } = svg.viewBox.baseVal;
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  paper.setAttribute("width", String(width));
  paper.setAttribute("height", String(height));
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(paper);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  return copy;
}

function svgText(svg: SVGSVGElement): string {
  return new XMLSerializer().serializeToString(standalone(svg));
}

export function saveSvg(name: string, svg: SVGSVGElement): void {
  download(`${name}.svg`, new Blob([svgText(svg)], { type: "image/svg+xml" }));
}

/** At twice the size on the screen, for slides and paper. */
export async function savePng(name: string, svg: SVGSVGElement): Promise<void> {
  const { width, height } = svg.viewBox.baseVal;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = width * 2;
  canvas.height = height * 2;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (blob) download(`${name}.png`, blob);
}
