// Follows the system unless the reader chooses.
export type Theme = "auto" | "light" | "dark";

const key = "syncopate-theme";

export function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(key);
    return stored === "light" || stored === "dark" ? stored : "auto";
  } catch {
    return "auto"; // storage is off
  }
}

export function applyTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
  try {
    if (theme === "auto") localStorage.removeItem(key);
    else localStorage.setItem(key, theme);
  } catch {
    // It holds until the page is closed.
  }
}
