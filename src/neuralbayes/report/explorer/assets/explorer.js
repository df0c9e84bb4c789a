// One explorer: the selection, and all panels that show it.
const STEPS = 1000; // of the threshold

class Explorer {
  constructor(root, side, samples, changed) {
    this.root = root;
    this.side = side;
    this.samples = samples;
    this.changed = changed;
    this.id = `side-${root.dataset.side}`;
    this.layers = side.layers.map(openLayer);
    this.layer = this.layers.at(-1);
    this.state = this.layer.first;
    const typical = membersOf(this.layer, this.state, "typical").map((member) => member.sample);
    this.sample = typical.find((i) => this.layer.mapped[i]) ?? typical[0] ?? 0;
    this.threshold = 0;
    this.colouring = "state";
    this.map = new StateMap(this);
    this.states = new States(this);
    this.members = new Members(this);
    this.panel = new SamplePanel(this);
    for (const radio of root.querySelectorAll(".layers input")) {
      radio.addEventListener("change", () => this.chooseLayer(Number(radio.value)));
    }
    this.part("threshold").addEventListener("input", () => this.drag());
    this.part("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.find(this.part("find").value);
    });
    this.part("previous").addEventListener("click", () => this.step(-1));
    this.part("next").addEventListener("click", () => this.step(1));
    this.part("pictures")?.addEventListener("change", () => this.map.draw());
    this.part("colour")?.addEventListener("change", (event) => {
      this.colouring = event.target.value;
      this.map.draw();
      this.drawLegend();
    });
    root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.sample !== null) this.chooseSample(null);
    });
    this.showLayer();
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  // Announces a text to screen readers.
  say(text) {
    this.part("live").textContent = text;
  }

  sentence(i) {
    const p = this.layer.certainty[i].toFixed(2);
    return `${described(this.samples, i)}: ${this.layer.thing} ${this.layer.claim[i]}, p = ${p}`;
  }

  chooseLayer(number) {
    this.layer = this.layers[number];
    this.state = this.sample === null ? this.layer.first : this.layer.claim[this.sample];
    this.threshold = 0;
    this.map.zoom.reset();
    this.map.lasso.clear();
    this.part("threshold").value = 0;
    this.showLayer();
    const { name, nStates, thing } = this.layer;
    this.say(`Layer ${name}, ${nStates} ${thing}s; ${thing} ${this.state} selected.`);
  }

  showLayer() {
    this.members.shown = FIRST;
    this.states.build();
    this.part("caption").textContent = `${this.layer.caption}.`;
    this.drawLegend();
    this.drawAll();
    this.showThreshold();
    this.changed?.();
  }

  chooseState(k) {
    this.state = k;
    this.members.shown = FIRST;
    this.drawAll();
    this.showThreshold();
    const { layer } = this;
    this.say(
      `${capitalized(layer.thing)} ${k}: p(z) ${percent(layer.prior[k])}, ${count(layer.claimed[k])} of ` +
        `${count(this.samples.length)} ${this.samples.noun}s${layer.dead.has(k) ? ", dead" : ""}.`,
    );
  }

  chooseSample(i, { withState = false } = {}) {
    this.sample = i;
    if (i !== null) this.part("find").value = this.samples.index[i];
    if (withState && this.layer.claim[i] !== this.state) {
      this.state = this.layer.claim[i];
      this.members.shown = FIRST;
      this.drawAll();
      this.showThreshold();
    } else {
      this.map.draw();
      this.panel.draw();
      this.members.mark();
    }
    this.part("found").textContent = "";
    this.say(i === null ? "No sample selected." : `${this.sentence(i)}.`);
  }

  // Selects a sample from elsewhere in the page, and scrolls to it.
  show(i) {
    this.chooseSample(i, { withState: true });
    this.part("sample").scrollIntoView({ block: "center" });
  }

  // Names of the clusters; null for other layers.
  names() {
    if (this.layer !== this.layers.at(-1)) return null;
    return (this.side.described ?? this.side.gallery)?.clusters ?? null;
  }

  // Whether each state has its own colour: if there are few, and in a gallery.
  isColoured() {
    return this.layer.nStates <= N_COLORS || (this.side.gallery !== null && this.layer === this.layers.at(-1));
  }

  find(text) {
    const index = Number(text);
    const { samples } = this;
    if (text.trim() !== "" && !Number.isInteger(index) && (samples.names || samples.texts)) {
      this.findWords(text);
      return;
    }
    if (text === "" || !Number.isInteger(index) || index < 0 || index >= samples.nAll) {
      this.tell(`The index must be a whole number from 0 to ${count(samples.nAll - 1)}.`);
      return;
    }
    const i = samples.place.get(index);
    if (i !== undefined) {
      this.chooseSample(i, { withState: true });
      return;
    }
    const after = samples.index.findIndex((value) => value > index);
    const near = after < 0 ? samples.length - 1 : after;
    this.tell(
      `${samples.noun} ${count(index)} is not on this page, which shows ${count(samples.length)} of ` +
        `${count(samples.nAll)}; the next is ${count(samples.index[near])}.`,
    );
    this.part("find").value = index;
  }

  // Selects the next sample whose name or text contains all the words.
  findWords(text) {
    const { samples } = this;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = Array.from({ length: samples.length }, (_, i) => i).filter((i) => {
      const own = `${samples.names?.[i] ?? ""}\n${samples.texts?.[i] ?? ""}`.toLowerCase();
      return words.every((word) => own.includes(word));
    });
    if (!matches.length) {
      this.tell(`No ${samples.noun} on this page has ${text.trim()} in its ${samples.texts ? "text" : "name"}.`);
      return;
    }
    const next = matches.find((i) => i > (this.sample ?? -1)) ?? matches[0];
    this.chooseSample(next, { withState: true });
    this.map.zoom.reveal(next);
    this.part("find").value = text; // so that Find continues with the next
    const [place, n] = [matches.indexOf(next) + 1, matches.length];
    this.part("found").textContent = `${count(place)} of ${count(n)} ${samples.noun}${n === 1 ? "" : "s"} found.`;
  }

  // Shows and announces a text.
  tell(text) {
    this.part("found").textContent = text;
    this.say(text);
  }

  step(by) {
    const n = this.samples.length;
    const i = this.sample === null ? (by > 0 ? 0 : n - 1) : (this.sample + by + n) % n;
    this.chooseSample(i, { withState: true });
  }

  drag() {
    // The range ends at the most certain sample, so that every position has an effect.
    this.threshold = (Number(this.part("threshold").value) / STEPS) * this.layer.largest;
    this.members.draw();
    this.map.draw();
    this.showThreshold();
  }

  showThreshold() {
    const { layer, samples, threshold, state } = this;
    let kept = 0;
    let own = 0;
    for (let i = 0; i < layer.claim.length; i++) {
      if (layer.certainty[i] < threshold) continue;
      kept += 1;
      if (layer.claim[i] === state) own += 1;
    }
    this.part("threshold-value").textContent = threshold.toFixed(2);
    const text =
      `${count(kept)} of ${count(samples.length)} ${samples.noun}s remain, ` +
      `${count(own)} of ${count(layer.claimed[state])} in ${layer.thing} ${state}`;
    this.part("remain").textContent = text;
    this.part("threshold").setAttribute("aria-valuetext", `${threshold.toFixed(2)}: ${text}`);
  }

  drawLegend() {
    const { layer, samples } = this;
    const legend = this.part("legend");
    if (this.colouring === "class") {
      const entries = samples.classNames.map((name, k) => {
        const dot = swatch(k);
        const shape = SHAPES[Math.floor(k / N_COLORS) % SHAPES.length];
        if (shape === "square") dot.style.borderRadius = "0";
        if (shape === "triangle") dot.style.clipPath = "polygon(50% 0, 100% 100%, 0 100%)";
        return make("span", {}, dot, name);
      });
      legend.replaceChildren(...entries.slice(0, 3 * N_COLORS));
    } else if (this.isColoured()) {
      legend.replaceChildren(`Coloured by ${layer.thing}; pale points are uncertain, the selected ${layer.thing} has an outline.`);
    } else legend.replaceChildren(`Orange: the selected ${layer.thing}. Grey: all others; pale points are uncertain.`);
  }

  drawAll() {
    this.states.mark();
    this.states.draw();
    this.map.draw();
    this.members.draw();
    this.panel.draw();
  }
}
