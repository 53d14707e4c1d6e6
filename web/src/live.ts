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

/** A browser reconnects by itself while the server answers; where it gives up (a refused connection), we try again. */
export function listen(address: string, listener: Listener): () => void {
  let source: EventSource | null = null;
  let timer = 0;
  let wait = 1000;
  let updated: number | null = null;
  let closed = false;

  const connect = () => {
    source = new EventSource(address);
    source.addEventListener("open", () => {
      wait = 1000;
      listener.state({ connection: "open", updated });
    });
    source.addEventListener("results", (event) => {
      let results: Results | null = null;
      try {
        results = complete(JSON.parse((event as MessageEvent<string>).data));
      } catch {
        return; // cut short: the next event is whole
      }
      if (results === null) return;
      updated = Date.now();
      listener.results(results);
      listener.state({ connection: "open", updated });
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
