// Samples that two explorers assign differently.
const MOVED = 48; // samples to show
const ALIKE = 4; // samples per pair of states

// Pairs the states that share most samples, largest share first. Each state is in at most one pair.
function paired(a, b) {
  const shared = new Map();
  for (let i = 0; i < a.claim.length; i++) {
    const key = a.claim[i] * b.nStates + b.claim[i];
    shared.set(key, (shared.get(key) ?? 0) + 1);
  }
  const cells = Array.from(shared).sort((x, y) => y[1] - x[1] || x[0] - y[0]);
  const [left, right] = [new Map(), new Map()];
  for (const [key] of cells) {
    const [j, k] = [Math.floor(key / b.nStates), key % b.nStates];
    if (left.has(j) || right.has(k)) continue;
    left.set(j, k);
    right.set(k, j);
  }
  return left;
}

function compare(one, other, summary, list) {
  const [a, b] = [one.layer, other.layer];
  const pairs = paired(a, b);
  const moved = [];
  for (let i = 0; i < a.claim.length; i++) {
    if (pairs.get(a.claim[i]) !== b.claim[i]) moved.push(i);
  }
  const sure = (i) => Math.min(a.certainty[i] / Math.max(a.largest, 1e-9), b.certainty[i] / Math.max(b.largest, 1e-9));
  moved.sort((i, j) => sure(j) - sure(i) || i - j);
  const { samples } = one;
  const n = samples.length;
  const names = [`${one.side.title}, ${a.name}`, `${other.side.title}, ${b.name}`];
  summary.textContent =
    `Each ${a.thing} of ${names[0]} is paired with the ${b.thing} of ${names[1]} that shares most ${samples.noun}s with it. ` +
    `${count(n - moved.length)} of ${count(n)} ${samples.noun}s (${percent((n - moved.length) / n)}) are in the same ` +
    `pair; ${count(moved.length)} are assigned differently.`;
  if (moved.length === 0) {
    list.replaceChildren(make("p", { className: "empty", text: "Both assign all samples in the same way." }));
    return;
  }
  const alike = new Map();
  const shown = moved
    .filter((i) => {
      const key = a.claim[i] * b.nStates + b.claim[i];
      alike.set(key, (alike.get(key) ?? 0) + 1);
      return alike.get(key) <= ALIKE;
    })
    .slice(0, MOVED);
  const pick = (i) => () => {
    one.chooseSample(i, { withState: true });
    other.chooseSample(i, { withState: true });
  };
  const few = shown.length < moved.length ? `, at most ${ALIKE} per pair` : "";
  const title = make("h3", { text: `The ${count(shown.length)} that both are most certain of${few}` });
  const text = `below: ${a.thing} of ${one.side.title} → ${b.thing} of ${other.side.title}`;
  const about = make("p", { className: "small", text });
  if (samples.sheet) {
    const thumbs = shown.map((i) =>
      make(
        "button",
        {
          type: "button",
          className: "thumb",
          "data-sample": i,
          label: `${described(samples, i)}: ${a.thing} ${a.claim[i]}, then ${b.claim[i]}`,
          on: { click: pick(i) },
        },
        thumbnail(samples, i),
        make("span", { text: `${a.claim[i]} → ${b.claim[i]}` }),
      ),
    );
    list.replaceChildren(title, about, make("div", { className: "thumbs" }, ...thumbs));
    return;
  }
  const rows = shown.map((i) => {
    const index = count(samples.index[i]);
    const button = make("button", { type: "button", text: index, "data-sample": i, on: { click: pick(i) } });
    const cells = [a.claim[i], a.certainty[i].toFixed(2), b.claim[i], b.certainty[i].toFixed(2)];
    const first = make("th", { scope: "row" }, button);
    return make("tr", {}, first, ...cells.map((value) => make("td", { text: value })));
  });
  const head = ["row", `${a.thing} of ${one.side.title}`, "p", `${b.thing} of ${other.side.title}`, "p"];
  list.replaceChildren(title, table(head, rows));
}
