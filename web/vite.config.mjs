// Builds dist/page.html: one file that asks nobody for anything.
import { defineConfig } from "vite";
import { sha256, sourcesHash } from "./sources.mjs";

// The browser runs the one script whose hash stands in the policy, so that nothing put into the page later can run.
// connect-src is for `syncopate watch`, which serves the page and its events.
function policy(script, style) {
  return [
    "default-src 'none'",
    `script-src 'sha256-${sha256(script, "base64")}'`,
    `style-src 'sha256-${sha256(style, "base64")}'`,
    "img-src data: blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

function oneFile() {
  return {
    name: "one-file",
    apply: "build",
    enforce: "post",
    generateBundle(_, bundle) {
      const files = Object.values(bundle);
      const page = files.find((file) => file.fileName.endsWith(".html"));
      const scripts = files.filter((file) => file.type === "chunk");
      const styles = files.filter((file) => file.fileName.endsWith(".css"));
      if (!page || scripts.length !== 1 || styles.length !== 1 || files.length !== 3) {
        this.error(`expected a page, a script and a style, not ${files.map((file) => file.fileName).join(", ")}`);
      }
      const script = scripts[0].code.replaceAll("</script", "<\\/script").replaceAll("<!--", "\\x3c!--");
      const style = String(styles[0].source);
      page.source = String(page.source)
        .replace(/\s*<script type="module"[^>]*src=[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace(/<meta charset="utf-8">/, (charset) =>
          [
            charset,
            `<meta http-equiv="Content-Security-Policy" content="${policy(script, style)}">`,
            `<meta name="syncopate-sources" content="${sourcesHash()}">`,
          ].join("\n"))
        .replace("</head>", () => `<style>${style}</style>\n</head>`)
        .replace("</body>", () => `<script type="module">${script}</script>\n</body>`);
      for (const file of [...scripts, ...styles]) delete bundle[file.fileName];
    },
  };
}

export default defineConfig({
  plugins: [oneFile()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    rollupOptions: { input: "page.html" },
  },
});
