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
})();
