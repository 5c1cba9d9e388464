"use strict";
/* Light or dark: the system's, or what was chosen here and is remembered. It stands in the head, so that nothing flashes. */
(() => {
  const root = document.documentElement, system = window.matchMedia("(prefers-color-scheme: dark)"), KEY = "evaltrack.theme";
  const stored = () => { try { return localStorage.getItem(KEY); } catch { return null; /* a frame without storage */ } };
  const systems = () => (system.matches ? "dark" : "light");
  let theme = stored();

  const apply = () => {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    else delete root.dataset.theme;
    for (const button of document.querySelectorAll(".theme")) button.setAttribute("aria-pressed", (root.dataset.theme || systems()) === "dark" ? "true" : "false");
  };

  function toggle() {
    const next = (root.dataset.theme || systems()) === "dark" ? "light" : "dark";
    theme = next === systems() ? null : next;
    try {
      if (theme) localStorage.setItem(KEY, theme);
      else localStorage.removeItem(KEY);
    } catch { /* chosen for this page alone */ }
    apply();
  }

  apply();
  system.addEventListener("change", apply);
  window.addEventListener("storage", (event) => { if (event.key === KEY || event.key === null) { theme = stored(); apply(); } });
  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll(".theme")) button.addEventListener("click", toggle);
    apply();
  });
})();
