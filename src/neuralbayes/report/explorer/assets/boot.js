// Start: wait for the thumbnails, open the explorers, theme, copy.
const explorers = [];

function redraw() {
  for (const explorer of explorers) explorer.drawAll();
}

function setTheme(theme, { keep = true } = {}) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = theme === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", theme === "dark" ? "Change to light colours" : "Change to dark colours");
  if (keep) {
    try {
      localStorage.setItem("neuralbayes-theme", theme);
    } catch {
      // Some browsers have no storage for local files.
    }
  }
  redraw();
}

function startTheme() {
  const root = document.documentElement.dataset;
  document.getElementById("theme").addEventListener("click", () => {
    setTheme(root.theme === "dark" ? "light" : "dark");
  });
  let before = null;
  addEventListener("beforeprint", () => {
    before = root.theme;
    setTheme("light", { keep: false });
  });
  addEventListener("afterprint", () => setTheme(before ?? "light", { keep: false }));
  setTheme(root.theme, { keep: false });
}

function startCopying() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code); // if the browser does not allow copying, select the text
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
  }
}

async function start() {
  const { samples: rawSamples, sides } = JSON.parse(document.getElementById("payload").textContent);
  const sheets = rawSamples.map((_, i) => document.getElementById(`sheet-${i}`));
  const backgrounds = Array.from(document.querySelectorAll('[data-part="background"]'));
  await Promise.all([...sheets, ...backgrounds].filter(Boolean).map((image) => image.decode()));
  const samples = rawSamples.map((raw, i) => openSamples(raw, sheets[i]));
  const summary = document.querySelector('[data-compare="summary"]');
  const list = document.querySelector('[data-compare="list"]');
  const changed = () => {
    if (summary && explorers.length === 2) compare(...explorers, summary, list);
  };
  document.querySelectorAll(".explorer").forEach((root, i) => {
    explorers.push(new Explorer(root, sides[i], samples[sides[i].samples], changed));
  });
  for (const root of document.querySelectorAll("[data-rows]")) {
    const explorer = explorers[Number(root.dataset.rows)];
    if (explorer.side.gallery) new MemberList(root, explorer);
    else new RowList(root, explorer);
  }
  startGalleries();
  changed();
  document.documentElement.dataset.ready = "yes";
}

startTheme();
startCopying();
start();
