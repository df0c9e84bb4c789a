// The map: samples as points on a canvas, with hover, click and arrow keys.
const SHAPES = ["round", "square", "triangle"];
const SIDE = 30; // side of a picture on the map, in pixels
const REACH = 14; // distance in pixels at which the pointer finds a point

class StateMap {
  constructor(explorer) {
    this.explorer = explorer;
    this.canvas = explorer.part("map");
    this.tip = explorer.part("tip");
    this.background = explorer.part("background");
    this.cursor = null; // the point selected by keyboard
    this.zoom = new Zoom(this);
    this.lasso = new Lasso(this);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.hideTip());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => {
      this.cursor = null;
      this.hideTip();
      this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  // Position of a value on either axis, in pixels.
  x(value) {
    return this.left + ((value - this.view[0]) / (this.view[1] - this.view[0])) * this.width;
  }

  y(value) {
    return this.top + (1 - (value - this.view[2]) / (this.view[3] - this.view[2])) * this.height;
  }

  // Position of sample i.
  at(i) {
    const { places, extent } = this.explorer.layer;
    return [
      this.x(extent[0] + (places[2 * i] / WHOLE) * (extent[1] - extent[0])),
      this.y(extent[2] + (places[2 * i + 1] / WHOLE) * (extent[3] - extent[2])),
    ];
  }

  frame(width, height) {
    const { layer, side } = this.explorer;
    const [left, right, bottom, top] = layer.extent;
    const [dx, dy] = [0.03 * (right - left), 0.03 * (top - bottom)];
    this.full = side.background?.extent ?? [left - dx, right + dx, bottom - dy, top + dy];
    this.view = [...this.zoom.part(this.full[0], this.full[1], 0), ...this.zoom.part(this.full[2], this.full[3], 1)];
    const [named, high] = [layer.axes[0] !== "", layer.axes[1] !== ""];
    const margin = { left: high ? 56 : 8, right: 8, top: 8, bottom: named ? 46 : 8 };
    let w = width - margin.left - margin.right;
    let h = height - margin.top - margin.bottom;
    const spread = [this.view[1] - this.view[0], this.view[3] - this.view[2]];
    // Similar units keep their proportions; very different ones would become a line.
    if (!named || (high && Math.min(...spread) > Math.max(...spread) / 8)) {
      const scale = Math.min(w / spread[0], h / spread[1]);
      margin.left += (w - scale * spread[0]) / 2;
      margin.top += (h - scale * spread[1]) / 2;
      w = scale * spread[0];
      h = scale * spread[1];
    }
    Object.assign(this, { left: margin.left, top: margin.top, width: w, height: h, whole: [width, height] });
  }

  // Colour and shape of a sample.
  style(i) {
    const { layer, samples, colouring } = this.explorer;
    const value = colouring === "class" ? samples.classes[i] : layer.claim[i];
    if (colouring !== "class" && layer.nStates > N_COLORS) return { color: manyColor(value), shape: 0 };
    return { color: this.palette[value % N_COLORS], shape: Math.floor(value / N_COLORS) % SHAPES.length };
  }

  draw() {
    const { explorer } = this;
    const { layer, state, threshold, sample } = explorer;
    const { context, width, height } = sharpened(this.canvas);
    if (width === 0) return;
    this.frame(width, height);
    this.palette = Array.from({ length: N_COLORS }, (_, k) => stateColor(k));
    this.drawAxes(context);
    context.save();
    if (this.zoom.scale > 1) {
      context.beginPath();
      context.rect(this.left, this.top, this.width, this.height);
      context.clip();
    }
    this.drawRegions(context);
    const coloured = explorer.colouring === "class" || explorer.isColoured();
    const plain = color("point");
    const chosen = coloured ? null : color("chosen");
    const ink = color("ink");
    const order = [[], [], []]; // below the threshold, others, members of the selected state on top
    for (let i = 0; i < layer.mapped.length; i++) {
      if (!layer.mapped[i]) continue;
      const kept = layer.certainty[i] >= threshold;
      order[kept ? (layer.claim[i] === state ? 2 : 1) : 0].push(i);
    }
    const radius = layer.mapped.length > 2500 ? 2.4 : 3;
    order.forEach((samples, rank) => {
      for (const i of samples) {
        const style = coloured ? this.style(i) : { color: plain, shape: 0 };
        const sure = 0.4 + 0.5 * Math.min(1, layer.certainty[i] / Math.max(layer.largest, 1e-9));
        context.globalAlpha = rank === 0 ? 0.07 : rank === 2 ? 0.95 : coloured ? sure : 0.8 * sure;
        const selected = this.lasso.chosen?.has(i);
        if (this.lasso.chosen && !selected) context.globalAlpha *= 0.3;
        context.fillStyle = rank === 2 && chosen ? chosen : style.color;
        this.mark(context, ...this.at(i), rank === 2 ? radius + 1.2 : radius, style.shape);
        if ((rank === 2 && coloured) || selected) {
          context.globalAlpha = 0.9;
          context.strokeStyle = ink;
          context.lineWidth = 1;
          context.stroke();
        }
      }
    });
    context.globalAlpha = 1;
    if (explorer.part("pictures")?.checked) this.drawPictures(context, order, coloured);
    if (sample !== null) this.ring(context, sample, 9, color("chosen"), true);
    if (this.cursor !== null) this.ring(context, this.cursor, 7, color("accent"), false);
    this.lasso.draw(context);
    context.restore();
    this.lasso.touch();
  }

  // Whether a position in pixels is visible.
  seen(x, y) {
    return x >= this.left && x <= this.left + this.width && y >= this.top && y <= this.top + this.height;
  }

  // Draws as many samples as fit as small pictures, with a coloured edge.
  drawPictures(context, order, coloured) {
    const { image, columns, cell, width, height } = this.explorer.samples.sheet;
    const scale = SIDE / Math.max(width, height);
    const [w, h] = [width * scale, height * scale];
    const drawn = [];
    for (const i of [...order[2], ...order[1]]) {
      const [x, y] = this.at(i);
      if (!this.seen(x, y)) continue;
      if (drawn.some(([px, py]) => Math.abs(px - x) < w + 5 && Math.abs(py - y) < h + 5)) continue;
      drawn.push([x, y]);
      context.globalAlpha = this.lasso.chosen && !this.lasso.chosen.has(i) ? 0.3 : 1;
      const from = [(i % columns) * cell, Math.floor(i / columns) * cell];
      context.fillStyle = coloured ? this.style(i).color : color("line");
      context.fillRect(x - w / 2 - 2, y - h / 2 - 2, w + 4, h + 4);
      context.drawImage(image, ...from, width, height, x - w / 2, y - h / 2, w, h);
    }
    context.globalAlpha = 1;
  }

  mark(context, x, y, radius, shape) {
    context.beginPath();
    if (SHAPES[shape] === "square") context.rect(x - radius * 0.9, y - radius * 0.9, radius * 1.8, radius * 1.8);
    else if (SHAPES[shape] === "triangle") {
      context.moveTo(x, y - radius * 1.2);
      context.lineTo(x + radius * 1.15, y + radius * 0.9);
      context.lineTo(x - radius * 1.15, y + radius * 0.9);
      context.closePath();
    } else context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
  }

  ring(context, i, radius, ink, cross) {
    const [x, y] = this.at(i);
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.stroke();
    if (!cross) return;
    context.globalAlpha = 0.25;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(x - radius, y);
    context.moveTo(x + radius, y);
    context.lineTo(this.whole[0], y);
    context.moveTo(x, 0);
    context.lineTo(x, y - radius);
    context.moveTo(x, y + radius);
    context.lineTo(x, this.whole[1]);
    context.stroke();
    context.globalAlpha = 1;
  }

  drawRegions(context) {
    if (!this.background?.complete) return;
    const [left, right, bottom, top] = this.full;
    const [x, y] = [this.x(left), this.y(top)];
    context.drawImage(this.background, x, y, this.x(right) - x, this.y(bottom) - y);
  }

  drawAxes(context) {
    const { axes } = this.explorer.layer;
    if (axes[0] === "") return;
    context.fillStyle = color("muted");
    context.font = "12px system-ui, sans-serif";
    const floor = this.top + this.height;
    context.fillRect(this.left, floor, this.width, 1);
    context.textAlign = "center";
    for (const value of niceTicks(this.view[0], this.view[1])) {
      context.fillText(short(value), this.x(value), floor + 17);
      context.fillRect(this.x(value), floor, 1, 4);
    }
    const middle = Math.min(Math.max(this.left + this.width / 2, this.whole[0] / 2 - 10), this.whole[0] / 2 + 10);
    context.fillText(clipped(context, axes[0], this.whole[0] - 24), middle, floor + 36);
    if (axes[1] === "") return;
    context.fillRect(this.left, this.top, 1, this.height);
    context.textAlign = "right";
    let widest = 0;
    for (const value of niceTicks(this.view[2], this.view[3])) {
      context.fillText(short(value), this.left - 7, this.y(value) + 4);
      context.fillRect(this.left - 4, this.y(value), 4, 1);
      widest = Math.max(widest, context.measureText(short(value)).width);
    }
    context.save();
    context.translate(Math.max(11, this.left - widest - 14), this.top + this.height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText(clipped(context, axes[1], this.whole[1] - 20), 0, 0);
    context.restore();
  }

  nearest(x, y, reach, accept = () => true) {
    const { layer, threshold } = this.explorer;
    let best = null;
    let least = reach * reach;
    for (let i = 0; i < layer.mapped.length; i++) {
      if (!layer.mapped[i] || layer.certainty[i] < threshold || !accept(i)) continue;
      const [px, py] = this.at(i);
      if (reach < Infinity && !this.seen(px, py)) continue;
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.nearest(event.clientX - box.left, event.clientY - box.top, REACH);
  }

  hover(event) {
    const i = this.lasso.way === null ? this.under(event) : null;
    if (i === null) this.hideTip();
    else this.showTip(i);
  }

  click(event) {
    if (this.lasso.dragged) return; // the end of a drag
    const i = this.under(event);
    if (i !== null) this.explorer.chooseSample(i, { withState: true });
  }

  // Arrows move to the nearest point in their direction; Enter selects it; plus, minus and 0 zoom.
  key(event) {
    const towards = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "+" || event.key === "-") this.zoom.by(event.key === "+" ? ZOOM_STEP : 1 / ZOOM_STEP);
    else if (event.key === "0") this.zoom.whole();
    else if (event.key === "Enter" && this.cursor !== null) {
      this.explorer.chooseSample(this.cursor, { withState: true });
    } else if (towards) {
      event.preventDefault();
      const from = this.cursor ?? this.explorer.sample;
      const [x, y] = from === null ? [this.whole[0] / 2, this.whole[1] / 2] : this.at(from);
      const found = this.nearest(x, y, Infinity, (i) => {
        const [px, py] = this.at(i);
        const along = (px - x) * towards[0] + (py - y) * towards[1];
        const across = Math.abs((px - x) * towards[1]) + Math.abs((py - y) * towards[0]);
        return i !== from && along > 0.5 && along >= across;
      });
      if (found === null) return;
      this.cursor = found;
      this.zoom.reveal(found);
      this.draw();
      this.showTip(found);
      this.explorer.say(this.explorer.sentence(found));
    }
  }

  showTip(i) {
    const { samples } = this.explorer;
    const lines = [this.explorer.sentence(i), samples.texts?.[i], samples.names?.[i]].filter(Boolean);
    const spans = lines.map((text) => make("span", { text }));
    this.tip.replaceChildren(...(samples.sheet ? [thumbnail(samples, i)] : []), ...spans);
    this.tip.hidden = false;
    const [x, y] = this.at(i);
    const { width, height } = this.tip.getBoundingClientRect();
    const left = Math.min(Math.max(0, x + 14), Math.max(0, this.whole[0] - width));
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${y + 16 + height > this.whole[1] ? Math.max(0, y - height - 14) : y + 16}px`;
  }

  hideTip() {
    this.tip.hidden = true;
  }
}

// A few round numbers between two others.
function niceTicks(low, high) {
  const raw = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}

function clipped(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let n = text.length;
  while (n > 1 && context.measureText(`${text.slice(0, n)}…`).width > width) n -= 1;
  return `${text.slice(0, n)}…`;
}
