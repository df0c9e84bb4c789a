// The visible part of the map. Buttons, keys, double click, pinch or Ctrl+wheel zoom; dragging moves it.
const ZOOM_STEP = 1.6;
const MOST_ZOOM = 40;

class Zoom {
  constructor(map) {
    this.map = map;
    this.reset();
    const { canvas, explorer } = map;
    explorer.part("zoom-in").addEventListener("click", () => this.by(ZOOM_STEP));
    explorer.part("zoom-out").addEventListener("click", () => this.by(1 / ZOOM_STEP));
    explorer.part("zoom-whole").addEventListener("click", () => this.whole());
    canvas.addEventListener("dblclick", (event) => this.by(ZOOM_STEP, this.fraction(event)));
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return; // scroll the page; a pinch sets ctrlKey
        event.preventDefault();
        this.by(Math.exp(-event.deltaY / 200), this.fraction(event));
      },
      { passive: false },
    );
  }

  reset() {
    [this.scale, this.center] = [1, [0.5, 0.5]];
  }

  // The visible part of a range [low, high] along an axis.
  part(low, high, axis) {
    const middle = low + this.center[axis] * (high - low);
    const half = (high - low) / this.scale / 2;
    return [middle - half, middle + half];
  }

  // Position of an event in the map, from 0 to 1 along each axis.
  fraction(event) {
    const { canvas, left, top, width, height } = this.map;
    const box = canvas.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left - left) / width, 1 - (event.clientY - box.top - top) / height];
    return [x, y].map((value, axis) => this.center[axis] + (value - 0.5) / this.scale);
  }

  // Zooms in by a factor around the point `at`.
  by(factor, at = this.center) {
    const scale = Math.min(MOST_ZOOM, Math.max(1, this.scale * factor));
    const kept = this.scale / scale;
    this.center = this.center.map((value, axis) => at[axis] + (value - at[axis]) * kept);
    this.scale = scale;
    this.show();
  }

  // Moves the map by a distance in pixels.
  move(dx, dy) {
    const { width, height } = this.map;
    this.center = [this.center[0] - dx / width / this.scale, this.center[1] + dy / height / this.scale];
    this.show();
  }

  // Centres a sample that is not visible.
  reveal(i) {
    const { layer } = this.map.explorer;
    if (this.map.seen(...this.map.at(i))) return;
    const { full } = this.map;
    const { extent, places } = layer;
    this.center = [0, 1].map((axis) => {
      const [low, high] = [2 * axis, 2 * axis + 1];
      const value = extent[low] + (places[2 * i + axis] / WHOLE) * (extent[high] - extent[low]);
      return (value - full[low]) / (full[high] - full[low]);
    });
    this.show();
  }

  whole() {
    this.reset();
    this.show();
  }

  show() {
    const edge = 0.5 / this.scale;
    this.center = this.center.map((value) => Math.min(1 - edge, Math.max(edge, value)));
    const { explorer } = this.map;
    explorer.part("zoom-out").disabled = this.scale === 1;
    explorer.part("zoom-whole").disabled = this.scale === 1;
    explorer.part("zoom-in").disabled = this.scale >= MOST_ZOOM;
    this.map.hideTip();
    this.map.draw();
  }
}
