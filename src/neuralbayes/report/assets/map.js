// The map: members as points on a canvas, with hover, click and arrow keys.
const REACH = 14; // distance in pixels at which the pointer finds a point
const COLORS = 7;
const GOLDEN = 137.508; // degrees: consecutive hues are far apart

const color = (name) => getComputedStyle(document.body).getPropertyValue(`--${name}`).trim();

// The colour of a cluster, as in `Card.fill`.
function clusterColor(k) {
  if (k < 0) return color("out");
  return k < COLORS ? color(`c${k}`) : `hsl(${Math.round((k * GOLDEN + 205) % 360)} 58% ${[44, 56, 50][k % 3]}%)`;
}

// Small builder. Text is inserted as text, never as HTML, because names come from users' data.
function make(tag, { text, on, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  if (text !== undefined) element.textContent = text;
  for (const [name, handler] of Object.entries(on ?? {})) element.addEventListener(name, handler);
  element.append(...children.filter((child) => child));
  return element;
}

class MemberMap {
  // `page` has `labels`, `cluster` (chosen or null), `member` (drawn member or null), `hits` (a set or null) and `data`.
  constructor(page) {
    this.page = page;
    this.canvas = document.getElementById("map");
    this.tip = document.getElementById("tip");
    this.cursor = null; // the point selected by keyboard
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => {
      this.cursor = null;
      this.tip.hidden = true;
      this.draw();
    });
    addEventListener("themed", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  // Position of drawn member i in pixels.
  at(i) {
    const { points } = this.page.data;
    return [
      this.left + (points[2 * i] / 65535) * this.side[0],
      this.top + (1 - points[2 * i + 1] / 65535) * this.side[1],
    ];
  }

  draw() {
    const { width } = this.canvas.getBoundingClientRect();
    if (width === 0) return;
    const { axes, spread } = this.page.data; // both axes have one unit
    const highest = Math.max(280, Math.min(620, 0.6 * window.innerHeight));
    const height = Math.round(Math.min(highest, Math.max(240, (width * spread[1]) / spread[0])));
    this.canvas.style.height = `${height}px`;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const margin = { left: axes[1] ? 24 : 10, bottom: axes[0] ? 26 : 10, other: 10 };
    const room = [width - margin.left - margin.other, height - margin.bottom - margin.other];
    const unit = Math.min(room[0] / spread[0], room[1] / spread[1]);
    this.side = [unit, unit];
    this.left = margin.left + room[0] / 2 - unit / 2;
    this.top = margin.other + room[1] / 2 - unit / 2;
    this.size = [width, height];
    this.drawAxes(context, axes);
    this.drawPoints(context);
    if (this.page.member !== null) this.ring(context, this.page.member, 9, color("mark"));
    if (this.cursor !== null) this.ring(context, this.cursor, 7, color("accent"));
  }

  drawPoints(context) {
    const { labels, cluster, hits, data } = this.page;
    const order = [[], []]; // pale ones below
    for (let i = 0; i < data.length; i++) {
      const bright = hits ? hits.has(i) : cluster === null || labels[i] === cluster;
      order[bright ? 1 : 0].push(i);
    }
    const radius = Math.max(1.8, Math.min(4, 110 / Math.sqrt(data.length + 1)));
    const fills = new Map();
    order.forEach((members, bright) => {
      for (const i of members) {
        const k = labels[i];
        if (!fills.has(k)) fills.set(k, clusterColor(k));
        context.globalAlpha = bright ? 0.45 + 0.5 * (data.proba[i] / 255) : 0.1;
        context.fillStyle = context.strokeStyle = fills.get(k);
        const [x, y] = this.at(i);
        context.beginPath();
        context.arc(x, y, bright && (hits || cluster !== null) ? radius + 0.8 : radius, 0, 2 * Math.PI);
        if (k < 0) context.stroke();
        else context.fill();
      }
    });
    context.globalAlpha = 1;
  }

  ring(context, i, radius, ink) {
    context.strokeStyle = ink;
    context.lineWidth = 2.5;
    context.beginPath();
    context.arc(...this.at(i), radius, 0, 2 * Math.PI);
    context.stroke();
  }

  drawAxes(context, axes) {
    context.fillStyle = color("muted");
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    if (axes[0]) context.fillText(axes[0], this.size[0] / 2, this.size[1] - 8, this.size[0] - 30);
    if (!axes[1]) return;
    context.save();
    context.translate(14, this.size[1] / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(axes[1], 0, 0, this.size[1] - 30);
    context.restore();
  }

  nearest(x, y, reach, accept = () => true) {
    let [best, least] = [null, reach * reach];
    for (let i = 0; i < this.page.data.length; i++) {
      if (!accept(i)) continue;
      const [px, py] = this.at(i);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  // The bright point under the pointer, else any.
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const place = [event.clientX - box.left, event.clientY - box.top];
    const { labels, cluster, hits } = this.page;
    const bright = (i) => (hits ? hits.has(i) : cluster === null || labels[i] === cluster);
    return this.nearest(...place, REACH, bright) ?? this.nearest(...place, REACH);
  }

  hover(event) {
    const i = this.under(event);
    this.canvas.style.cursor = i === null ? "" : "pointer";
    if (i === null) this.tip.hidden = true;
    else this.showTip(i);
  }

  click(event) {
    const i = this.under(event);
    if (i === null) this.page.clear();
    else this.page.choose(this.page.labels[i], i);
  }

  // Arrows move to the nearest point in their direction; Enter selects it and its cluster.
  key(event) {
    const towards = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "Enter" && this.cursor !== null) this.page.choose(this.page.labels[this.cursor], this.cursor);
    if (!towards) return;
    event.preventDefault();
    const from = this.cursor ?? this.page.member;
    const [x, y] = from === null ? [this.size[0] / 2, this.size[1] / 2] : this.at(from);
    const found = this.nearest(x, y, Infinity, (i) => {
      const [px, py] = this.at(i);
      const along = (px - x) * towards[0] + (py - y) * towards[1];
      const across = Math.abs((px - x) * towards[1]) + Math.abs((py - y) * towards[0]);
      return i !== from && along > 0.5 && along >= across;
    });
    if (found === null) return;
    this.cursor = found;
    this.draw();
    this.showTip(found);
  }

  showTip(i) {
    this.tip.replaceChildren(...this.page.described(i, 4));
    this.tip.hidden = false;
    const [x, y] = this.at(i);
    const { width, height } = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.min(Math.max(0, x + 14), Math.max(0, this.size[0] - width))}px`;
    this.tip.style.top = `${y + 16 + height > this.size[1] ? Math.max(0, y - height - 14) : y + 16}px`;
  }
}
