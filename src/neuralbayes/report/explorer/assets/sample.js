// The panel of one sample: its picture or values, and its posterior.
class SamplePanel {
  constructor(explorer) {
    this.explorer = explorer;
    this.root = explorer.part("sample");
  }

  draw() {
    const { explorer } = this;
    const { layer, samples, sample } = explorer;
    if (sample === null) {
      this.root.replaceChildren(
        make("h4", { text: `One ${samples.noun}` }),
        make("p", { className: "empty", text: `Click a point or a member, or find a ${samples.noun} by its index.` }),
      );
      return;
    }
    const title = `${capitalized(samples.noun)} ${count(samples.index[sample])}`;
    const facts = [];
    const named = explorer.names();
    if (named) facts.push(named[layer.claim[sample]]);
    if (samples.names) facts.push(samples.names[sample]);
    if (samples.classes) facts.push(`class ${className(samples, sample)}`);
    facts.push(`entropy of p(z|x) ${((layer.entropy[sample] / WHOLE) * layer.bound).toFixed(2)} nats`);
    facts.push(
      layer.mapped[sample] ? "ringed on the map" : "not on the map: the ring marks its nearest neighbour",
    );
    const text = samples.texts ? make("p", { className: "specimen-text", text: samples.texts[sample] }) : null;
    const right = make("div", {}, text, make("p", { className: "about", text: facts.join(" · ") }), this.posterior());
    const left = samples.sheet ? thumbnail(samples, sample) : null;
    if (left) {
      left.setAttribute("role", "img");
      left.removeAttribute("aria-hidden");
      left.setAttribute("aria-label", described(samples, sample));
    }
    this.root.replaceChildren(
      make("div", { className: "heading" }, make("h4", { text: title })),
      make("div", { className: "specimen" }, left, right),
    );
    if (samples.values) this.root.append(...this.values());
  }

  posterior() {
    const { explorer } = this;
    const { layer, sample, state } = explorer;
    const start = sample * layer.nTop;
    const largest = layer.topP[start];
    let rest = WHOLE;
    const lines = [];
    for (let j = 0; j < layer.nTop; j++) {
      const [k, p] = [layer.top[start + j], layer.topP[start + j]];
      rest -= p;
      const name = make("button", {
        type: "button",
        text: `${layer.thing} ${k}`,
        "data-state": k,
        on: { click: () => explorer.chooseState(k) },
      });
      lines.push(...barLine(name, p / largest, (p / WHOLE).toFixed(3), k === state ? "chosen" : ""));
    }
    const others = layer.nStates - layer.nTop;
    if (others > 0) {
      const value = (Math.max(0, rest) / WHOLE).toFixed(3);
      lines.push(nameCell(`${count(others)} others`), make("span"), make("span", { className: "value", text: value }));
    }
    return make("div", { className: "bar-list", role: "group", label: "p(z|x)", "data-list": "posterior" }, ...lines);
  }

  values() {
    const { samples, sample } = this.explorer;
    const d = samples.columns.length;
    const z = samples.columns.map(({ mean, std }, j) =>
      std > 0 ? (samples.values[sample * d + j] - mean) / std : 0,
    );
    const lines = samples.columns.flatMap(({ name }, j) => {
      const value = `${short(samples.values[sample * d + j])} (${signed(z[j])} sd)`;
      return signedLine(nameCell(name), z[j] / 3, value);
    });
    return [
      make("p", { className: "small", text: "Values, and standard deviations from the mean; bars end at 3" }),
      make("div", { className: "bar-list", "data-list": "values" }, ...lines),
    ];
  }
}
