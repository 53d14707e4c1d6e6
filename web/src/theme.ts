// Follows the system unless the reader chooses.
export type Theme = "auto" | "light" | "dark";

const key = "syncopate-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
let chosen = stored();

function stored(): Theme {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto"; // storage is off
  }
}

function show(): void {
  document.documentElement.dataset.theme = chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
}

export function currentTheme(): Theme {
  return chosen;
}

export function chooseTheme(theme: Theme): void {
  chosen = theme;
  show();
  try {
    if (theme === "auto") localStorage.removeItem(key);
    else localStorage.setItem(key, theme);
  } catch {
    // It holds until the page is closed.
  }
}

export function followTheme(): void {
  dark.addEventListener("change", show);
  show();
}
