// Keeps the theme in a cookie: the server draws the next page in it, so nothing flashes.
const root = document.documentElement;
const YEAR = 365 * 24 * 3600;

document.querySelector("[data-theme-toggle]")?.addEventListener("click", () => {
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; path=/; max-age=${YEAR}; samesite=lax`;
});
