import { render } from "preact";
import { App } from "./app";
import { liveAddress } from "./live";
import { complete } from "./results";
import "./style.css";
import { followTheme } from "./theme";

function embedded() {
  try {
    return complete(JSON.parse(document.getElementById("results")?.textContent ?? "null"));
  } catch {
    return null;
  }
}

followTheme();
const place = document.getElementById("page");
if (place) render(<App first={embedded()} address={liveAddress()} />, place);
