// The data of the page: base64 arrays, decoded into typed arrays.
const WHOLE = 65535;
const NONE = 65535;

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function unpack(text, kind) {
  return text === null || text === undefined ? null : new kind(bytes(text).buffer);
}

function openSamples(raw, sheet) {
  const index = unpack(raw.index, Uint32Array);
  return {
    noun: raw.noun,
    nAll: raw.nAll,
    length: index.length,
    index,
    place: new Map(Array.from(index, (value, i) => [value, i])),
    names: raw.names,
    texts: raw.texts,
    textColumn: raw.textColumn,
    classes: unpack(raw.classes, Uint16Array),
    classNames: raw.classNames,
    sheet: raw.sheet && { ...raw.sheet, image: sheet },
    columns: raw.columns,
    values: unpack(raw.values, Float32Array),
  };
}

function openLayer(raw) {
  const layer = {
    ...raw,
    prior: unpack(raw.prior, Float32Array),
    dead: new Set(raw.dead),
    top: unpack(raw.top, Uint16Array),
    topP: unpack(raw.topP, Uint16Array),
    entropy: unpack(raw.entropy, Uint16Array),
    typical: unpack(raw.typical, Uint16Array),
    typicalP: unpack(raw.typicalP, Uint16Array),
    borderline: unpack(raw.borderline, Uint16Array),
    places: unpack(raw.places, Uint16Array),
    mapped: unpack(raw.mapped, Uint8Array),
    classes: unpack(raw.classes, Uint16Array),
    classShares: unpack(raw.classShares, Uint16Array),
    profile: unpack(raw.profile, Float32Array),
  };
  const n = layer.entropy.length;
  layer.claim = new Uint16Array(n); // the most probable state of each sample
  layer.certainty = new Float32Array(n); // and its probability
  layer.claimed = new Uint32Array(layer.nStates); // samples of each state
  for (let i = 0; i < n; i++) {
    layer.claim[i] = layer.top[i * layer.nTop];
    layer.certainty[i] = layer.topP[i * layer.nTop] / WHOLE;
    layer.claimed[layer.claim[i]] += 1;
  }
  layer.largest = layer.certainty.reduce((a, b) => Math.max(a, b), 0);
  layer.order = Array.from(layer.prior.keys()).sort((a, b) => layer.prior[b] - layer.prior[a] || a - b);
  return layer;
}

// Members of a state as {sample, p, entropy}: "typical", "borderline", or all of them, most certain first.
function membersOf(layer, state, which) {
  const entropy = (i) => (layer.entropy[i] / WHOLE) * layer.bound;
  if (which === "typical") {
    const start = state * layer.nTypical;
    return Array.from({ length: layer.nTypical }, (_, j) => start + j)
      .filter((at) => layer.typical[at] !== NONE)
      .map((at) => {
        const sample = layer.typical[at];
        return { sample, p: layer.typicalP[at] / WHOLE, entropy: entropy(sample) };
      });
  }
  let samples;
  if (which === "borderline") {
    const start = state * layer.nBorderline;
    samples = Array.from(layer.borderline.subarray(start, start + layer.nBorderline)).filter((i) => i !== NONE);
  } else {
    samples = Array.from(layer.claim.keys()).filter((i) => layer.claim[i] === state);
    samples.sort((a, b) => layer.certainty[b] - layer.certainty[a] || a - b);
  }
  return samples.map((sample) => ({ sample, p: layer.certainty[sample], entropy: entropy(sample) }));
}

// The most common classes among the members of a state.
function classesOf(layer, samples, state) {
  return Array.from({ length: layer.nClasses }, (_, j) => state * layer.nClasses + j)
    .map((at) => ({ name: samples.classNames[layer.classes[at]], share: layer.classShares[at] / WHOLE }))
    .filter(({ share }) => share > 0);
}
