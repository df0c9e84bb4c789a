// Samples selected by drawing around them on the map: counted by cluster, and saved as CSV.
const LEAST_WAY = 12; // pixels: a shorter path is a click

// Whether a point is inside a polygon: a ray from the point crosses the edge an odd number of times.
function inside(x, y, polygon) {
  let found = false;
  polygon.forEach(([x1, y1], i) => {
    const [x2, y2] = polygon[(i + 1) % polygon.length];
    if (y1 > y !== y2 > y && x < x1 + ((y - y1) / (y2 - y1)) * (x2 - x1)) found = !found;
  });
  return found;
}

// The columns of a table of samples: texts, files and classes, or the cells of the rows.
function csvColumns({ samples, side }) {
  if (side.described) {
    const cells = side.described.columns.map(({ name, cells }) => ({ name, cells: cells.split("\n") }));
    return [{ name: "row", cells: side.described.names }, ...cells];
  }
  const columns = [];
  if (samples.texts) columns.push({ name: samples.textColumn, cells: samples.texts });
  if (samples.names) columns.push({ name: "file", cells: samples.names });
  if (samples.classes) {
    columns.push({ name: "class", cells: Array.from(samples.classes, (k) => samples.classNames[k]) });
  }
  return columns;
}

// Saves samples as a file; cells that a spreadsheet would read as formulas get an apostrophe.
function saveSamples(explorer, rows, file) {
  const quoted = (cell) => `"${String(cell).replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`;
  const { samples, layer } = explorer;
  const [names, columns] = [explorer.names(), csvColumns(explorer)];
  const lines = rows.map((i) => [
    samples.index[i],
    layer.claim[i],
    ...(names ? [quoted(names[layer.claim[i]])] : []),
    layer.certainty[i].toFixed(4),
    ...columns.map(({ cells }) => quoted(cells[i])),
  ]);
  const head = ["index", "label", ...(names ? ["cluster"] : []), "p", ...columns.map(({ name }) => quoted(name))];
  const text = [head, ...lines].map((cells) => cells.join(",")).join("\r\n");
  const link = make("a", { download: file });
  link.href = URL.createObjectURL(new Blob([`${text}\r\n`], { type: "text/csv" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Dragging on the map: selects samples by drawing around them, or moves the map.
class Lasso {
  constructor(map) {
    this.map = map;
    const { canvas, explorer } = map;
    this.button = explorer.part("lasso");
    this.way = null; // path of the pointer while it is pressed
    this.dragged = false; // whether the next click ends a drag
    this.chosen = null; // selected samples
    this.button.addEventListener("click", () => this.toggle());
    explorer.part("selection-save").addEventListener("click", () => {
      saveSamples(explorer, this.rows(), "selection.csv");
    });
    explorer.part("selection-clear").addEventListener("click", () => this.clear());
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.go(event));
    canvas.addEventListener("pointerup", () => this.end());
    canvas.addEventListener("pointercancel", () => (this.way = null));
  }

  get active() {
    return this.button.getAttribute("aria-pressed") === "true";
  }

  toggle() {
    this.button.setAttribute("aria-pressed", String(!this.active));
    this.touch();
  }

  // A finger scrolls the page unless it selects samples or moves the map.
  touch() {
    this.map.canvas.style.touchAction = this.active || this.map.zoom.scale > 1 ? "none" : "manipulation";
  }

  point(event) {
    const box = this.map.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  begin(event) {
    this.dragged = false;
    if (event.button !== 0 || !(this.active || this.map.zoom.scale > 1)) return;
    this.way = [this.point(event)];
    this.map.canvas.setPointerCapture(event.pointerId);
  }

  go(event) {
    if (this.way === null) return;
    const [to, from, first] = [this.point(event), this.way.at(-1), this.way[0]];
    if (Math.hypot(to[0] - first[0], to[1] - first[1]) > LEAST_WAY / 2) this.dragged = true;
    this.way.push(to);
    if (this.active) this.map.draw();
    else if (this.dragged) this.map.zoom.move(to[0] - from[0], to[1] - from[1]);
  }

  end() {
    const { way } = this;
    this.way = null;
    if (way === null || !this.active) return;
    const length = way.slice(1).reduce((sum, [x, y], i) => sum + Math.hypot(x - way[i][0], y - way[i][1]), 0);
    if (length >= LEAST_WAY) this.choose(way);
    else this.map.draw();
  }

  choose(polygon) {
    const { layer, threshold } = this.map.explorer;
    const found = new Set();
    for (let i = 0; i < layer.mapped.length; i++) {
      if (!layer.mapped[i] || layer.certainty[i] < threshold) continue;
      const at = this.map.at(i);
      if (this.map.seen(...at) && inside(...at, polygon)) found.add(i);
    }
    this.chosen = found;
    this.show();
  }

  clear() {
    this.chosen = null;
    this.show();
  }

  rows() {
    return Array.from(this.chosen ?? []).sort((a, b) => a - b);
  }

  show() {
    const { explorer } = this.map;
    const { layer, samples } = explorer;
    const none = this.chosen === null;
    explorer.part("selection").hidden = none;
    if (!none) {
      const counts = new Map();
      for (const i of this.chosen) counts.set(layer.claim[i], (counts.get(layer.claim[i]) ?? 0) + 1);
      const names = explorer.names();
      const most = Array.from(counts).sort((a, b) => b[1] - a[1]);
      const listed = most.slice(0, 4).map(([k, n]) => `${count(n)} in ${names ? names[k] : `${layer.thing} ${k}`}`);
      if (most.length > 4) listed.push(`others in ${most.length - 4} more`);
      const { size } = this.chosen;
      const text = `${count(size)} ${samples.noun}${size === 1 ? "" : "s"} selected${size ? `: ${listed.join(", ")}` : ""}.`;
      explorer.part("selection-count").textContent = text;
      explorer.part("selection-save").disabled = size === 0;
      explorer.say(text);
    } else explorer.say("Nothing selected.");
    this.map.draw();
  }

  draw(context) {
    if (this.way === null || !this.active) return;
    context.beginPath();
    this.way.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    context.globalAlpha = 0.12;
    context.fillStyle = color("accent");
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = color("accent");
    context.lineWidth = 1.5;
    context.stroke();
  }
}
