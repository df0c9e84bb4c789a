// The panel of the selected state or cluster: its facts, its typical and borderline members, all its members.
const FIRST = 24; // images before "Show more"
const FIRST_ROWS = 6; // rows are taller
const LISTS = [
  ["typical", "Most typical", "largest p(x|z)/p(x), given below"],
  ["borderline", "Borderline", "members with the largest entropy of p(z|x), given below in nats"],
  ["all", "All members", "most certain first, with p(z|x) below"],
];

class Members {
  constructor(explorer) {
    this.explorer = explorer;
    this.root = explorer.part("members");
    this.shown = FIRST;
    this.width = 0;
    new ResizeObserver(() => {
      // A table takes as many columns as fit.
      if (this.explorer.samples.values && Math.abs(this.root.clientWidth - this.width) > 24) this.draw();
    }).observe(this.root);
  }

  draw() {
    const { explorer } = this;
    const { layer, samples, state } = explorer;
    this.width = this.root.clientWidth;
    this.root.replaceChildren(this.head(layer, samples, state));
    if (layer.classes && layer.claimed[state] > 0) this.root.append(this.classes(layer, samples, state));
    if (layer.profile && layer.claimed[state] > 0) this.root.append(...this.profile(layer, samples, state));
    for (const [which, title, about] of LISTS) {
      const midmost = which === "typical" && layer.midmost;
      this.root.append(...this.list(which, title, midmost ? "in the middle of the members, with p(z|x) below" : about));
    }
  }

  head(layer, samples, state) {
    const { explorer } = this;
    const title = make("h4", { text: `${capitalized(layer.thing)} ${state}` });
    if (explorer.isColoured()) {
      const dot = swatch(state);
      dot.style.background = clusterColor(state, layer.nStates);
      title.prepend(dot);
    }
    const step = (by, label, text) =>
      make("button", {
        type: "button",
        className: "step",
        text,
        label,
        "data-step": by,
        on: {
          click: () => {
            explorer.chooseState((state + by + layer.nStates) % layer.nStates);
            this.root.querySelector(`[data-step="${by}"]`).focus();
          },
        },
      });
    const [before, next] = [step(-1, `Previous ${layer.thing}`, "←"), step(1, `Next ${layer.thing}`, "→")];
    const facts = [
      `p(z) = ${percent(layer.prior[state])}, ${(layer.prior[state] * layer.nStates).toFixed(2)} times an equal share`,
      `${count(layer.claimed[state])} of ${count(samples.length)} ${samples.noun}s`,
    ];
    const named = explorer.names()?.[state];
    if (named) facts.unshift(named);
    if (layer.dead.has(state)) facts.push("dead");
    if (layer.separation && layer.nStates > 1) {
      const value = layer.separation[state];
      const size = value === null ? "unknown" : `${ofHundred(value)} of 100`;
      const verdict = layer.disjoint ? (layer.disjoint[state] ? ": certified disjoint" : ": not certified") : "";
      facts.push(`separation ${size}${verdict}`);
    }
    return make(
      "div",
      {},
      make("div", { className: "heading" }, title, make("div", { className: "steps" }, before, next)),
      make("p", { className: "about", text: facts.join(" · ") }),
    );
  }

  classes(layer, samples, state) {
    const lines = classesOf(layer, samples, state).flatMap(({ name, share }) =>
      barLine(nameCell(`class ${name}`), share, percent(share)),
    );
    return make("div", { className: "bar-list", "data-list": "classes" }, ...lines);
  }

  // How the members differ from all rows.
  profile(layer, samples, state) {
    const columns = this.telling(layer, samples, state).slice(0, 8);
    const d = samples.columns.length;
    const lines = columns.flatMap((j) => {
      const z = layer.profile[state * d + j];
      return signedLine(nameCell(samples.columns[j].name), z / 3, `${signed(z)} sd`);
    });
    return [
      make("h5", { text: "How its rows differ from the mean of all rows" }),
      make("p", { className: "small", text: "in standard deviations of each column; bars end at 3" }),
      make("div", { className: "bar-list", "data-list": "profile" }, ...lines),
    ];
  }

  // Columns, sorted by how far the members are from the mean.
  telling(layer, samples, state) {
    const d = samples.columns.length;
    const size = (j) => Math.abs(layer.profile[state * d + j]);
    return Array.from({ length: d }, (_, j) => j).sort((a, b) => size(b) - size(a));
  }

  list(which, title, about) {
    const { explorer } = this;
    const { layer, samples, state, threshold } = explorer;
    const every = membersOf(layer, state, which);
    const kept = every.filter(({ p }) => p >= threshold);
    const parts = [
      make("h5", { text: threshold > 0 ? `${title}: ${count(kept.length)} of ${count(every.length)}` : title }),
      make("p", { className: "small", text: about }),
    ];
    const most = samples.sheet ? this.shown : (this.shown / FIRST) * FIRST_ROWS;
    const shown = kept.slice(0, which === "all" ? most : samples.sheet ? kept.length : FIRST_ROWS);
    if (shown.length === 0) {
      const why = every.length ? "No member reaches the threshold." : `No ${samples.noun} on this page belongs to this ${layer.thing}.`;
      return [...parts, make("p", { className: "empty", text: why })];
    }
    const value = (member) => {
      if (which === "typical" && !layer.midmost) return `×${short(member.p / Math.max(layer.prior[state], 1e-12))}`;
      return which === "borderline" ? member.entropy.toFixed(2) : member.p.toFixed(2);
    };
    const draw = samples.sheet ? "thumbs" : samples.texts ? "texts" : "table";
    parts.push(this[draw](shown, value, which));
    if (which === "all" && shown.length < kept.length) {
      const more = () => {
        this.shown += 4 * FIRST;
        this.draw();
      };
      const text = `Show more (${count(kept.length - shown.length)} left)`;
      parts.push(make("button", { type: "button", className: "more", text, on: { click: more } }));
    }
    return parts;
  }

  thumbs(members, value, which) {
    const { samples, sample } = this.explorer;
    const buttons = members.map((member) =>
      make(
        "button",
        {
          type: "button",
          className: "thumb",
          "aria-pressed": String(member.sample === sample),
          "data-sample": member.sample,
          label: `${described(samples, member.sample)}, ${value(member)}`,
          on: { click: () => this.explorer.chooseSample(member.sample) },
        },
        thumbnail(samples, member.sample),
        make("span", { text: value(member) }),
      ),
    );
    return make("div", { className: "thumbs", "data-list": which }, ...buttons);
  }

  texts(members, value, which) {
    const { samples } = this.explorer;
    const lines = members.map((member) => {
      const button = make("button", {
        type: "button",
        className: "text",
        text: samples.texts[member.sample] || "(empty)",
        "data-sample": member.sample,
        on: { click: () => this.explorer.chooseSample(member.sample) },
      });
      return make("li", {}, button, make("span", { className: "small", text: value(member) }));
    });
    return make("ul", { className: "texts", "data-list": which }, ...lines);
  }

  table(members, value, which) {
    const { layer, samples, state } = this.explorer;
    const room = Math.max(1, Math.floor((this.width - 175) / 88));
    const columns = this.telling(layer, samples, state).slice(0, room);
    const d = samples.columns.length;
    const heading = { typical: layer.midmost ? "p(z|x)" : "p(x|z)/p(x)", borderline: "entropy", all: "p(z|x)" }[which];
    const rows = members.map((member) => {
      const cells = columns.map((j) => {
        const { mean, std } = samples.columns[j];
        const found = samples.values[member.sample * d + j];
        const z = std > 0 ? (found - mean) / std : 0;
        const cell = make("td", { className: z < 0 ? "below" : "above", text: short(found) });
        cell.append(make("small", { text: `${signed(z)} sd` }));
        return cell;
      });
      const button = make("button", {
        type: "button",
        text: count(samples.index[member.sample]),
        label: described(samples, member.sample),
        "data-sample": member.sample,
        on: { click: () => this.explorer.chooseSample(member.sample) },
      });
      const first = make("th", { scope: "row" }, button);
      return make("tr", {}, first, make("td", { text: value(member) }), ...cells);
    });
    const names = ["row", heading, ...columns.map((j) => samples.columns[j].name)];
    return make("div", { className: "scroll", "data-list": which }, table(names, rows));
  }

  // Marks the chosen sample where it stands.
  mark() {
    const { sample } = this.explorer;
    for (const button of this.root.querySelectorAll("[aria-pressed]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.sample) === sample));
    }
  }
}
