// Clusters of pictures and of texts: members that lead to the explorer, and the list of all of them.
const MEMBERS_AT_ONCE = 10; // in the list, before somebody asks for more
const GOLDEN = 137.508; // degrees: hues that follow one another are far apart

// The colour of one of many clusters, which reads on light and on dark ground.
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
    this.columns = [];
    if (samples.texts) this.columns.push({ name: samples.textColumn, cells: samples.texts });
    if (samples.names) this.columns.push({ name: "file", cells: samples.names });
    if (samples.classes) {
      this.columns.push({ name: "class", cells: Array.from(samples.classes, (k) => samples.classNames[k]) });
    }
    this.haystack = Array.from({ length: this.n }, (_, i) =>
      [samples.index[i], ...this.columns.map(({ cells }) => cells[i])].join("\n").toLowerCase(),
    );
    this.part("save").addEventListener("click", () => this.save());
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

  // What is found, as a file; a cell that a spreadsheet would take for a formula gets an apostrophe.
  save() {
    const quoted = (cell) => `"${String(cell).replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`;
    const { clusters } = this.gallery;
    const lines = this.found().map((i) => [
      this.explorer.samples.index[i],
      this.layer.claim[i],
      quoted(clusters[this.layer.claim[i]]),
      this.layer.certainty[i].toFixed(4),
      ...this.columns.map(({ cells }) => quoted(cells[i])),
    ]);
    const head = ["index", "label", "cluster", "p", ...this.columns.map(({ name }) => quoted(name))];
    const text = [head, ...lines].map((cells) => cells.join(",")).join("\r\n");
    const link = make("a", { download: "members.csv" });
    link.href = URL.createObjectURL(new Blob([`${text}\r\n`], { type: "text/csv" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}
