// Clusters of pictures and of texts: members link to the explorer, with a list of all of them.
const MEMBERS_AT_ONCE = 10; // in the list, before "Show more"
const GOLDEN = 137.508; // degrees: consecutive hues are far apart

// The colour of one of many clusters, for light and dark backgrounds.
const manyColor = (k) => `hsl(${(k * GOLDEN + 205) % 360} 58% ${[44, 56, 50][k % 3]}%)`;
const clusterColor = (k, n) => (n <= N_COLORS ? `var(--c${k})` : manyColor(k));

function startGalleries() {
  for (const dot of document.querySelectorAll("[data-swatch]")) {
    const { clusters } = explorers[Number(dot.dataset.side)].side.gallery;
    dot.style.background = clusterColor(Number(dot.dataset.swatch), clusters.length);
  }
  for (const button of document.querySelectorAll("[data-show]")) {
    const explorer = explorers[Number(button.dataset.side)];
    button.addEventListener("click", () => explorer.show(Number(button.dataset.show)));
  }
}

class MemberList extends SampleList {
  constructor(root, explorer) {
    super(root, explorer, MEMBERS_AT_ONCE);
    const { samples } = explorer;
    this.gallery = explorer.side.gallery;
    this.runnerUp = unpack(this.gallery.runnerUp, Uint16Array);
    this.n = samples.length;
    this.columns = csvColumns(explorer);
    this.haystack = Array.from({ length: this.n }, (_, i) =>
      [samples.index[i], ...this.columns.map(({ cells }) => cells[i])].join("\n").toLowerCase(),
    );
    this.part("save").addEventListener("click", () => saveSamples(explorer, this.found(), "members.csv"));
    this.draw();
  }

  head() {
    return [this.explorer.samples.noun, "cluster", "p(z|x)", ...this.columns.map(({ name }) => name), "second best"];
  }

  line(i) {
    const { clusters } = this.gallery;
    const { samples } = this.explorer;
    const name = this.link(i, count(samples.index[i]));
    if (samples.sheet) name.prepend(thumbnail(samples, i));
    const state = this.layer.claim[i];
    const dot = make("span", { className: "swatch" });
    dot.style.background = clusterColor(state, clusters.length);
    const cells = this.columns.map(({ cells }) => make("td", { className: cells === samples.texts ? "body" : "brief", text: cells[i] }));
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, name),
      make("td", {}, dot, clusters[state]),
      make("td", { text: this.layer.certainty[i].toFixed(2) }),
      ...cells,
      make("td", { className: "second", text: clusters.length > 1 ? clusters[this.runnerUp[i]] : "" }),
    );
  }
}
