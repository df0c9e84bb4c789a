// The page: which division is shown, which cluster and which member are chosen, what was searched for, new names.
const MOST_HITS = 8;
const count = (value) => new Intl.NumberFormat("en").format(value);
const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

function unpack(text, kind) {
  return new kind(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

function open(raw, sheet) {
  const points = unpack(raw.points, Uint16Array);
  const spread = [0, 1].map((axis) => {
    let [low, high] = [65535, 0];
    for (let i = axis; i < points.length; i += 2) [low, high] = [Math.min(low, points[i]), Math.max(high, points[i])];
    return Math.max(0.05, (high - low) / 65535);
  });
  const rows = unpack(raw.rows, Uint32Array);
  const haystack = raw.names.map((name, i) =>
    [name, rows[i], raw.texts?.[i] ?? "", ...raw.columns.map(({ cells }) => cells[i])].join("\n").toLowerCase(),
  );
  return {
    ...raw,
    ...{ points, spread, rows, haystack, sheetImage: sheet, length: rows.length },
    place: new Map(Array.from(rows, (row, i) => [row, i])),
    proba: unpack(raw.proba, Uint8Array),
    divisions: raw.divisions.map((one) => ({ ...one, labels: unpack(one.labels, Int16Array) })),
  };
}

class Page {
  constructor(data) {
    this.data = data;
    this.division = 0;
    this.labels = data.divisions[0].labels;
    this.names = [...data.divisions[0].names];
    this.cluster = this.member = this.hits = null;
    this.map = new MemberMap(this);
    document.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.clear();
    });
    this.search = document.getElementById("search");
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const [first] = this.hits ?? [];
      document.getElementById("hits").hidden = true;
      if (first !== undefined) this.choose(this.labels[first], first);
    });
    document.addEventListener("focusout", (event) => this.renamed(event.target));
    addEventListener("beforeunload", (event) => {
      if (this.unsaved) event.preventDefault();
    });
    this.editable(document);
    this.slot = document.getElementById("slot");
    if (this.slot) this.fill(Number(document.querySelector("[data-shown='0'] tr[data-cluster]").dataset.cluster));
  }

  // What one click does: show a division, a cluster or a member, sort a table, save or drop names.
  clicked({ target }) {
    const button = target.closest("button");
    if (!button) return;
    const { division, select, row, do: action } = button.dataset;
    if (division !== undefined) this.show(Number(division));
    else if (select !== undefined) {
      if (Number(select) === this.cluster) this.clear();
      else this.choose(Number(select));
    } else if (row !== undefined) this.showRow(Number(row));
    else if (action === "download") this.download();
    else if (action === "undo") this.rename([...this.data.divisions[0].names]);
    else if (button.parentElement.ariaSort || button.parentElement.hasAttribute("aria-sort")) sort(button.parentElement);
  }

  show(division) {
    this.division = division;
    this.labels = this.data.divisions[division].labels;
    for (const button of all("[data-division]")) button.ariaPressed = Number(button.dataset.division) === division;
    for (const part of all("[data-shown]")) part.hidden = Number(part.dataset.shown) !== division;
    this.clear();
  }

  // Chooses a cluster, and a member if one is given.
  choose(cluster, member = null) {
    [this.cluster, this.member] = [cluster, member];
    if (this.division === 0 && this.slot) this.fill(cluster);
    this.mark();
    if (member === null) return;
    const card = document.querySelector(`[data-shown="${this.division}"] .card[data-cluster="${cluster}"]`);
    if (matchMedia("(min-width: 1000px)").matches) card?.scrollIntoView({ block: "nearest" });
  }

  clear() {
    this.cluster = this.member = null;
    if (this.hits) this.search.value = "";
    this.find(this.search.value);
    this.mark();
  }

  showRow(row) {
    const i = this.data.place.get(row);
    const card = document.querySelector(`[data-row="${row}"]`).closest(".card");
    if (i !== undefined) this.choose(this.labels[i], i);
    else this.choose(Number(card.dataset.cluster)); // it is not among the drawn members
  }

  // Shows what is chosen.
  mark() {
    for (const button of all("[data-select]")) button.ariaPressed = Number(button.dataset.select) === this.cluster;
    for (const part of all("[data-cluster]")) part.classList.toggle("chosen", Number(part.dataset.cluster) === this.cluster);
    const panel = document.getElementById("member");
    panel.hidden = this.member === null;
    if (this.member !== null) panel.replaceChildren(...this.described(this.member, 99));
    this.map.draw();
  }

  name(cluster) {
    if (cluster < 0) return "Outliers";
    return this.division === 0 ? this.names[cluster] : this.data.divisions[this.division].names[cluster];
  }

  // Elements that describe a drawn member: thumbnail, name, cluster, text and at most `most` cells.
  described(i, most) {
    const { data } = this;
    const dot = make("i", { className: "swatch" });
    dot.style.background = clusterColor(this.labels[i]);
    const sure = this.division === 0 ? `, p = ${(data.proba[i] / 255).toFixed(2)}` : "";
    const cells = data.columns.slice(0, most).flatMap(({ name, cells }) => [
      make("dt", { text: name }),
      make("dd", { text: cells[i] }),
    ]);
    return [
      data.sheet && this.thumbnail(i),
      make(
        "div",
        {},
        make("b", { text: data.names[i] }),
        make("p", {}, dot, `${this.name(this.labels[i])}${sure}`),
        data.texts && make("p", { text: data.texts[i] }),
        cells.length ? make("dl", {}, ...cells) : null,
      ),
    ].filter(Boolean);
  }

  thumbnail(i) {
    const { columns, cell, width, height } = this.data.sheet;
    const canvas = make("canvas", { width, height });
    const from = [(i % columns) * cell, Math.floor(i / columns) * cell];
    canvas.getContext("2d").drawImage(this.data.sheetImage, ...from, width, height, 0, 0, width, height);
    return canvas;
  }

  // Finds the drawn members that have all words, and lists the first.
  find(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length
      ? Array.from(this.data.haystack.keys()).filter((i) => words.every((word) => this.data.haystack[i].includes(word)))
      : [];
    this.hits = words.length ? new Set(found) : null;
    const drawn = this.data.length < this.data.nAll ? ` of the ${count(this.data.length)} on the map` : "";
    document.getElementById("found").textContent = words.length ? `${count(found.length)} found${drawn}` : "";
    const list = document.getElementById("hits");
    list.hidden = !found.length;
    list.replaceChildren(
      ...found.slice(0, MOST_HITS).map((i) => {
        const dot = make("i", { className: "swatch" });
        dot.style.background = clusterColor(this.labels[i]);
        const text = this.data.texts?.[i] ?? this.data.names[i];
        const choose = () => {
          list.hidden = true;
          this.choose(this.labels[i], i);
        };
        return make("li", {}, make("button", { type: "button", className: "link", on: { click: choose } }, dot, text));
      }),
    );
    this.map.draw();
  }

  // Puts a card into its place when there are too many to show them all.
  fill(cluster) {
    const template = document.querySelector(`template[data-card="${cluster}"]`);
    this.slot.replaceChildren(template.content.cloneNode(true));
    this.editable(this.slot);
    const heading = this.slot.querySelector("[data-name]");
    if (heading) heading.textContent = this.names[cluster];
  }

  // Names of cards can be changed in place.
  editable(root) {
    for (const name of all("h3[data-name]", root)) {
      try {
        name.contentEditable = "plaintext-only";
      } catch {
        name.contentEditable = "true";
      }
      name.spellcheck = false;
      name.setAttribute("role", "textbox");
      name.ariaLabel = `Name of cluster ${name.dataset.name}`;
      name.title = "Click to rename";
      name.addEventListener("keydown", (event) => {
        if (event.key === "Escape") name.textContent = this.names[name.dataset.name];
        if (event.key === "Enter" || event.key === "Escape") {
          event.preventDefault();
          event.stopPropagation();
          name.blur();
        }
      });
    }
  }

  renamed(element) {
    if (!element.isContentEditable) return;
    const k = Number(element.dataset.name);
    const text = element.textContent.replace(/\s+/g, " ").trim();
    this.rename(this.names.map((name, i) => (i === k ? text || this.data.divisions[0].names[k] : name)));
  }

  rename(names) {
    this.names = names;
    for (const element of all("[data-name]")) {
      const inside = element.closest("[data-shown]");
      if (!inside || inside.dataset.shown === "0") element.textContent = names[element.dataset.name];
    }
    const n = Object.keys(this.changed()).length;
    this.unsaved = n > 0;
    const bar = document.getElementById("renamed");
    bar.hidden = n === 0;
    bar.querySelector("span").textContent = `${n} name${n === 1 ? "" : "s"} changed`;
  }

  // The new names by cluster.
  changed() {
    const old = this.data.divisions[0].names;
    return Object.fromEntries(this.names.map((name, k) => [k, name]).filter(([k, name]) => name !== old[k]));
  }

  download() {
    const content = new Blob([JSON.stringify(this.changed(), null, 2) + "\n"], { type: "application/json" });
    const link = make("a", { href: URL.createObjectURL(content), download: "names.json" });
    link.click();
    URL.revokeObjectURL(link.href);
    this.unsaved = false;
  }
}

// Sorts a table by the column of a heading: numbers first from the largest, words from a to z, then the other way.
function sort(heading) {
  const row = heading.parentElement;
  const column = Array.from(row.children).indexOf(heading);
  const numeric = heading.classList.contains("number");
  const down = heading.ariaSort === "none" ? numeric : heading.ariaSort === "ascending";
  for (const other of row.children) if (other.ariaSort) other.ariaSort = "none";
  heading.ariaSort = down ? "descending" : "ascending";
  const value = (line) => (numeric ? Number(line.children[column].dataset.value) : line.children[column].textContent.trim());
  const body = heading.closest("table").tBodies[0];
  const lines = Array.from(body.rows).map((line) => [value(line), line]);
  const order = ([a], [b]) => (numeric ? a - b : a.localeCompare(b)) * (down ? -1 : 1);
  body.append(...lines.sort(order).map(([, line]) => line));
}

async function start() {
  const sheet = document.getElementById("sheet");
  if (sheet) await sheet.decode();
  const page = new Page(open(JSON.parse(document.getElementById("payload").textContent), sheet));
  page.mark();
  document.documentElement.dataset.ready = "yes";
}

start();
