// The list of rows, with search, a filter by cluster, and the reason for each label.
const ROWS_AT_ONCE = 25;
const ROW_CELLS = 6; // columns next to the reason; the search also covers the others

// Common parts of all lists of samples: search, filter, order, and "Show more".
class SampleList {
  constructor(root, explorer, first = ROWS_AT_ONCE) {
    Object.assign(this, { root, explorer, layer: explorer.layers.at(-1), shown: first });
    for (const part of ["query", "cluster", "order"]) {
      this.part(part).addEventListener("input", () => {
        this.shown = first;
        this.draw();
      });
    }
    this.part("more").addEventListener("click", () => {
      this.shown += 4 * ROWS_AT_ONCE;
      this.draw();
    });
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  found() {
    const words = this.part("query").value.toLowerCase().split(/\s+/).filter(Boolean);
    const cluster = this.part("cluster").value;
    const rows = Array.from({ length: this.n }, (_, i) => i).filter(
      (i) =>
        (cluster === "" || this.layer.claim[i] === Number(cluster)) &&
        words.every((word) => this.haystack[i].includes(word)),
    );
    const order = this.part("order").value;
    const sign = order === "sure" ? -1 : 1;
    if (order !== "index") rows.sort((a, b) => sign * (this.layer.certainty[a] - this.layer.certainty[b]) || a - b);
    return rows;
  }

  link(i, text) {
    const title = "Show it in the explorer";
    return make("button", { type: "button", className: "link", text, title, on: { click: () => this.explorer.show(i) } });
  }

  draw() {
    const rows = this.found();
    const caption = make("caption", { className: "unseen", text: this.part("list").getAttribute("aria-label") });
    this.part("list").replaceChildren(table(this.head(), rows.slice(0, this.shown).map((i) => this.line(i)), caption));
    this.part("count").textContent = `${count(rows.length)} of ${count(this.n)} ${this.explorer.samples.noun}s`;
    this.part("more").hidden = rows.length <= this.shown;
  }
}

class RowList extends SampleList {
  constructor(root, explorer) {
    super(root, explorer);
    const described = explorer.side.described;
    this.described = described;
    this.n = described.names.length;
    this.columns = described.columns.map((column) => ({ ...column, cells: column.cells.split("\n") }));
    this.reasons = unpack(described.reasons, Int16Array);
    this.runnerUp = unpack(described.runnerUp, Uint16Array);
    this.haystack = Array.from({ length: this.n }, (_, i) =>
      [described.names[i], ...this.columns.map(({ name, cells }) => `${name} ${cells[i]}`)].join("\n").toLowerCase(),
    );
    this.draw();
  }

  head() {
    return ["row", "cluster", "p(z|x)", "why", ...this.columns.slice(0, ROW_CELLS).map(({ name }) => name)];
  }

  why(i) {
    const { clusters } = this.described;
    if (clusters.length < 2) return "there is no other cluster";
    const named = Array.from(this.reasons.subarray(3 * i, 3 * i + 3))
      .filter((j) => j >= 0)
      .map((j) => `${this.columns[j].name} ${this.columns[j].cells[i]}`);
    const against = `rather than ${clusters[this.runnerUp[i]]}`;
    return named.length ? `${named.join(", ")}; ${against}` : `no single column; ${against}`;
  }

  line(i) {
    const { clusters } = this.described;
    const name = this.link(i, this.described.names[i]);
    const state = this.layer.claim[i];
    const label = make("td", {});
    if (clusters.length <= N_COLORS) label.append(swatch(state));
    label.append(clusters[state]);
    const cells = this.columns.slice(0, ROW_CELLS).map(({ cells }) => make("td", { text: cells[i] }));
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, name),
      label,
      make("td", { text: this.layer.certainty[i].toFixed(2) }),
      make("td", { className: "why", text: this.why(i) }),
      ...cells,
    );
  }
}
