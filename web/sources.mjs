// A hash of everything that dist/page.html is made of. tools/check_web.py computes the same without npm.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = import.meta.dirname;

export function sha256(text, encoding) {
  return createHash("sha256").update(text).digest(encoding);
}

function list(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.name.startsWith(".") || path === "dist" || path === "node_modules") return [];
    return entry.isDirectory() ? list(path) : [path];
  });
}

export function sourcesHash() {
  const lines = list("")
    .sort()
    .map((path) => `${sha256(readFileSync(join(root, path)), "hex")}  ${path}\n`);
  return sha256(lines.join(""), "hex");
}
