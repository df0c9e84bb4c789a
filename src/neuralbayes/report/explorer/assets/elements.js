// Small builders. Text is inserted as text, never as HTML, because names come from users' data.
function make(tag, { text, label, on, ...properties } = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  if (text !== undefined) element.textContent = text;
  if (label !== undefined) element.setAttribute("aria-label", label);
  for (const [name, handler] of Object.entries(on ?? {})) element.addEventListener(name, handler);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const whole = new Intl.NumberFormat("en");
const count = (value) => whole.format(value);
const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`;

// Short format of numbers of any size.
function short(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(1);
  return String(Number(value.toPrecision(size >= 100 ? 4 : 3)));
}

function signed(value) {
  const size = Math.abs(value).toFixed(1);
  return size === "0.0" ? size : `${value < 0 ? "−" : "+"}${size}`;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const N_COLORS = 7;
const stateColor = (k) => color(`c${k % N_COLORS}`);

const capitalized = (word) => word[0].toUpperCase() + word.slice(1);

// A separation in nats as a number from 0 to 100.
const ofHundred = (nats) => ((100 * nats) / Math.log(2)).toFixed(0);

// A dot in the colour of a state or class.
function swatch(k) {
  const dot = make("span", { className: "swatch" });
  dot.style.background = `var(--c${k % N_COLORS})`;
  return dot;
}

// A table of headings and rows; the first cell of each row is its heading.
function table(head, rows, ...caption) {
  const headings = head.map((text) => make("th", { scope: "col", text, title: text }));
  return make("table", {}, ...caption, make("thead", {}, make("tr", {}, ...headings)), make("tbody", {}, ...rows));
}

// Resizes a canvas to its size on the screen, with sharp pixels; returns its context and size.
function sharpened(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

function thumbnail(samples, i) {
  const { image, columns, cell, width, height } = samples.sheet;
  const canvas = make("canvas", { width, height });
  canvas.setAttribute("aria-hidden", "true");
  const x = (i % columns) * cell;
  const y = Math.floor(i / columns) * cell;
  canvas.getContext("2d").drawImage(image, x, y, width, height, 0, 0, width, height);
  return canvas;
}

function className(samples, i) {
  return samples.classes ? samples.classNames[samples.classes[i]] : null;
}

// "image 31,245, class 7"
function described(samples, i) {
  const kind = className(samples, i);
  return `${samples.noun} ${count(samples.index[i])}${kind === null ? "" : `, class ${kind}`}`;
}

// One line of a list of bars: a name, a bar from 0 to `share` of the width, a value.
function barLine(name, share, value, style = "") {
  const fill = make("i", { className: style });
  fill.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  return [name, make("span", { className: "track" }, fill), make("span", { className: "value", text: value })];
}

// The same for bars on both sides of 0; `share` runs from -1 to 1.
function signedLine(name, share, value) {
  const fill = make("i", { className: share < 0 ? "below" : "above" });
  const size = 50 * Math.min(1, Math.abs(share));
  fill.style.left = `${share < 0 ? 50 - size : 50}%`;
  fill.style.width = `${size}%`;
  return [name, make("span", { className: "track signed" }, fill), make("span", { className: "value", text: value })];
}

function nameCell(text) {
  return make("span", { className: "name", text, title: text });
}
