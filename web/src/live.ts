// Listens to `syncopate watch`: each event brings the whole results, and the page updates in place.
import { complete, type Results } from "./results";

export interface LiveState {
  connection: "connecting" | "open" | "lost";
  updated: number | null;
}

interface Listener {
  results: (results: Results) => void;
  state: (state: LiveState) => void;
}

const longestWait = 10_000;

export function liveAddress(): string | null {
  return document.querySelector<HTMLMetaElement>('meta[name="syncopate-live"]')?.content || null;
}

function parsed(text: string | null): Results | null {
  try {
    return complete(JSON.parse(text ?? "null"));
  } catch {
    return null; // cut short: the next is whole
  }
}

/** A browser reconnects by itself while the server answers; where it gives up (a refused connection), we try again. */
export function listen(address: string, listener: Listener): () => void {
  let source: EventSource | null = null;
  let timer = 0;
  let wait = 1000;
  let updated: number | null = null;
  let closed = false;

  // The newest alone is shown, and the page rests three times as long as showing it took: thousands of runs do not
  // make it deaf to its reader.
  let newest: string | null = null;
  let rest = 0;
  const take = () => {
    const began = performance.now();
    const results = parsed(newest);
    newest = null;
    if (closed || results === null) return;
    updated = Date.now();
    listener.results(results);
    listener.state({ connection: "open", updated });
    requestAnimationFrame(() => window.setTimeout(() => (rest = 3 * (performance.now() - began))));
  };

  const connect = () => {
    source = new EventSource(address);
    source.addEventListener("open", () => {
      wait = 1000;
      listener.state({ connection: "open", updated });
    });
    source.addEventListener("results", (event) => {
      const waiting = newest !== null;
      newest = (event as MessageEvent<string>).data;
      if (!waiting) window.setTimeout(take, rest);
    });
    source.addEventListener("error", () => {
      listener.state({ connection: "lost", updated });
      if (closed || source?.readyState !== EventSource.CLOSED) return;
      clearTimeout(timer);
      timer = window.setTimeout(connect, wait);
      wait = Math.min(longestWait, wait * 2);
    });
  };
  listener.state({ connection: "connecting", updated });
  connect();
  return () => {
    closed = true;
    clearTimeout(timer);
    source?.close();
  };
}
