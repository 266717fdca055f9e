// Runs before the first paint: with "system" chosen, the server cannot know what the system prefers.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const choice = root.dataset.theme;
    root.dataset.bsTheme = choice === "system" ? (dark.matches ? "dark" : "light") : choice;
  };
  dark.addEventListener("change", apply);
  document.addEventListener("theme:chosen", apply);
  apply();
})();
