(() => {
  "use strict";
  let stored = null;
  try {
    stored = localStorage.getItem("neuralbayes-theme");
  } catch {
    // Some browsers have no storage for local files.
  }
  const dark = stored ? stored === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const show = (theme, keep) => {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to ${theme === "dark" ? "light" : "dark"} colours`);
    try {
      if (keep) localStorage.setItem("neuralbayes-theme", theme);
    } catch {
      // As above.
    }
    dispatchEvent(new Event("themed"));
  };
  addEventListener("DOMContentLoaded", () => {
    const root = document.documentElement.dataset;
    document.getElementById("theme").addEventListener("click", () => show(root.theme === "dark" ? "light" : "dark", true));
    let before = root.theme;
    addEventListener("beforeprint", () => {
      before = root.theme;
      for (const details of document.querySelectorAll("details")) details.open = true;
      show("light", false);
    });
    addEventListener("afterprint", () => show(before, false));
    show(root.theme, false);
  });
})();
