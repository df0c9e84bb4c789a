// p(z) as bars, and the states or clusters as chips: a listbox for the arrow keys.
class States {
  constructor(explorer) {
    this.explorer = explorer;
    this.canvas = explorer.part("bars");
    this.tip = explorer.part("bars-tip");
    this.chips = explorer.part("chips");
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const state = this.under(event);
      if (state !== null) explorer.chooseState(state);
    });
    this.chips.addEventListener("click", (event) => {
      const chip = event.target.closest("[role=option]");
      if (chip) explorer.chooseState(Number(chip.dataset.state));
    });
    this.chips.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  // New chips and a new table: of another layer.
  build() {
    const { layer, samples } = this.explorer;
    const n = layer.nStates;
    this.few = n <= N_COLORS;
    const largest = layer.prior.reduce((a, b) => Math.max(a, b), 0);
    this.chips.classList.toggle("few", this.few);
    this.chips.replaceChildren(
      ...Array.from({ length: n }, (_, k) => {
        const dead = layer.dead.has(k);
        const chip = make("div", { className: dead ? "chip dead" : "chip", id: `${this.explorer.id}-state-${k}` });
        chip.setAttribute("role", "option");
        chip.setAttribute("aria-selected", "false");
        chip.setAttribute("aria-label", `${layer.thing} ${k}, p(z) ${percent(layer.prior[k])}${dead ? ", dead" : ""}`);
        chip.dataset.state = k;
        chip.title = `${layer.thing} ${k}: p(z) = ${percent(layer.prior[k])}${dead ? ", dead" : ""}`;
        chip.style.setProperty("--share", layer.prior[k] / largest);
        if (this.few) {
          chip.append(swatch(k), `${layer.thing} ${k} · ${percent(layer.prior[k])}`);
        } else chip.textContent = dead ? `${k} †` : k;
        return chip;
      }),
    );
    const dead = layer.dead.size;
    const idle = layer.claimed.reduce((sum, claimed) => sum + (claimed === 0), 0);
    this.explorer.part("use").textContent =
      `${count(n)} ${layer.thing}${n > 1 ? "s" : ""}, ${dead ? `${count(dead)} dead (†, red)` : "none dead"}` +
      `${idle ? `, ${count(idle)} never the most probable` : ""}; dashed line: equal shares`;
    this.buildTable(layer, samples);
  }

  buildTable(layer, samples) {
    const head = [layer.thing, "p(z)", `${samples.noun}s`];
    if (layer.separation) head.push("separation, of 100", ...(layer.disjoint ? ["certified"] : []));
    if (layer.classes) head.push("most common class");
    const rows = layer.order.map((k) => {
      const cells = [percent(layer.prior[k]) + (layer.dead.has(k) ? " †" : ""), count(layer.claimed[k])];
      if (layer.separation) {
        const value = layer.separation[k];
        cells.push(value === null ? "unknown" : ofHundred(value));
        if (layer.disjoint) cells.push(layer.disjoint[k] ? "yes" : "no");
      }
      if (layer.classes) {
        const [best] = classesOf(layer, samples, k);
        cells.push(best ? `${best.name} (${percent(best.share)})` : "");
      }
      return make("tr", {}, make("th", { scope: "row", text: k }), ...cells.map((text) => make("td", { text })));
    });
    const caption = make("caption", { className: "unseen", text: `All ${layer.thing}s, the most common first` });
    this.explorer.part("states-table").replaceChildren(table(head, rows, caption));
  }

  // Marks the chosen chip.
  mark() {
    const { state } = this.explorer;
    this.chips.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
    if (state === null) return;
    const chip = this.chips.children[state];
    chip.setAttribute("aria-selected", "true");
    this.chips.setAttribute("aria-activedescendant", chip.id);
    // Within the list only: the page stays where it is.
    const [above, below] = [chip.offsetTop - this.chips.offsetTop, this.chips.clientHeight];
    if (above < this.chips.scrollTop) this.chips.scrollTop = above;
    else if (above + chip.offsetHeight > this.chips.scrollTop + below) {
      this.chips.scrollTop = above + chip.offsetHeight - below;
    }
  }

  key(event) {
    const { layer, state } = this.explorer;
    const last = layer.nStates - 1;
    const at = state ?? 0;
    const steps = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      ArrowDown: at + this.perRow(),
      ArrowUp: at - this.perRow(),
      Home: 0,
      End: last,
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.explorer.chooseState(Math.min(last, Math.max(0, steps[event.key])));
  }

  perRow() {
    const chips = Array.from(this.chips.children);
    return Math.max(1, chips.filter((chip) => chip.offsetTop === chips[0].offsetTop).length);
  }

  draw() {
    const { layer, state } = this.explorer;
    const { context, width, height } = sharpened(this.canvas);
    if (width === 0) return;
    const n = layer.nStates;
    const floor = height - 14;
    const highest = Math.max(1 / n, layer.prior[layer.order[0]]) * 1.08;
    const y = (p) => floor - (p / highest) * (floor - 4);
    this.step = width / n;
    const bar = Math.max(1, Math.min(this.step - (this.step > 4 ? 2 : 0), 64));
    const [plain, chosen, dead] = [color("accent"), color("chosen"), color("dead")];
    layer.order.forEach((k, place) => {
      const left = place * this.step + (this.step - bar) / 2;
      const isChosen = k === state;
      context.fillStyle = this.few ? stateColor(k) : isChosen ? chosen : plain;
      context.globalAlpha = isChosen || state === null ? 1 : this.few ? 0.65 : 0.55;
      context.fillRect(left, y(layer.prior[k]), bar, Math.max(1, floor - y(layer.prior[k])));
      context.globalAlpha = 1;
      if (layer.dead.has(k)) {
        context.fillStyle = dead;
        context.fillRect(left, floor + 2, Math.max(bar, 1), 4);
      }
      if (isChosen) {
        context.fillStyle = chosen;
        const middle = left + bar / 2;
        context.beginPath();
        context.moveTo(middle, floor + 3);
        context.lineTo(middle + 5, floor + 11);
        context.lineTo(middle - 5, floor + 11);
        context.fill();
      }
    });
    context.strokeStyle = color("muted");
    context.setLineDash([4, 4]);
    context.beginPath();
    context.moveTo(0, y(1 / n));
    context.lineTo(width, y(1 / n));
    context.stroke();
    context.setLineDash([]);
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const place = Math.floor((event.clientX - box.left) / this.step);
    return this.explorer.layer.order[place] ?? null;
  }

  hover(event) {
    const k = this.under(event);
    if (k === null) return;
    const { layer } = this.explorer;
    const dead = layer.dead.has(k) ? ", dead" : "";
    this.tip.textContent = `${layer.thing} ${k}: p(z) = ${percent(layer.prior[k])}${dead}`;
    this.tip.hidden = false;
    const box = this.canvas.getBoundingClientRect();
    const { width } = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.min(Math.max(0, event.clientX - box.left + 8), box.width - width)}px`;
    this.tip.style.top = "2px";
  }
}
