// Drawing points with pointer, touch and keys.

const NEAR = 15; // pixels within which a point is taken hold of
const round = value => Number(value.toPrecision(5));

/** Listens to the canvas of a picture and changes the points of a state. */
export class Editor {
  constructor(show, host) {
    this.show = show;
    this.host = host; // state, minus (label of the next point), editable, moved(), done(words)
    this.held = -1;
    const { canvas } = show;
    canvas.addEventListener("pointerdown", event => this.down(event));
    canvas.addEventListener("pointermove", event => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, event => this.up(event));
    canvas.addEventListener("contextmenu", event => {
      event.preventDefault();
      this.remove(this.nearest(event));
    });
    canvas.addEventListener("keydown", event => this.key(event));
    canvas.addEventListener("blur", () => this.choose(-1));
  }

  place(event) {
    const box = this.show.canvas.getBoundingClientRect(), part = this.show.plane.size / box.width;
    return [(event.clientX - box.left) * part, (event.clientY - box.top) * part];
  }

  nearest(event) {
    const [x, y] = this.place(event);
    let best = -1, least = NEAR;
    this.host.state.points.forEach((point, i) => {
      const [a, b] = this.show.plane.toPixels(point), far = Math.hypot(a - x, b - y);
      if (far <= least) [best, least] = [i, far];
    });
    return best;
  }

  data(event) { return this.show.plane.toData(...this.place(event)).map(round); }

  down(event) {
    if (event.button !== 0 || !this.host.editable) return;
    const { state } = this.host;
    this.held = this.nearest(event);
    this.fresh = this.held < 0;
    if (this.fresh) {
      if (!this.host.room()) return;
      const minus = event.shiftKey !== this.host.minus;
      state.points.push(this.data(event));
      state.labels.push(minus ? -1 : 1);
      this.held = state.points.length - 1;
    }
    this.moved = this.fresh;
    this.show.canvas.setPointerCapture(event.pointerId);
    this.choose(this.held);
    if (this.fresh) this.host.moved();
  }

  move(event) {
    if (this.held < 0) {
      this.show.canvas.style.cursor = this.host.editable ? (this.nearest(event) < 0 ? "crosshair" : "grab") : "default";
      return;
    }
    this.host.state.points[this.held] = this.data(event);
    this.moved = true;
    this.host.moved();
  }

  up() {
    if (this.held < 0) return;
    const words = this.fresh ? "point added" : "point moved";
    this.held = -1;
    if (this.moved) this.host.done(words);
  }

  choose(index) {
    this.show.plane.chosen = index;
    this.show.draw();
  }

  remove(index) {
    if (index < 0 || !this.host.editable) return;
    this.host.state.points.splice(index, 1);
    this.host.state.labels.splice(index, 1);
    this.choose(Math.min(this.show.plane.chosen, this.host.state.points.length - 1));
    this.host.done("point removed");
  }

  add(label) {
    if (!this.host.room()) return;
    const { state } = this.host, turn = 2.4 * state.points.length, out = 0.5 * this.show.plane.reach;
    state.points.push([round(out * Math.cos(turn)), round(out * Math.sin(turn))]);
    state.labels.push(label);
    this.choose(state.points.length - 1);
    this.host.done(`point added at ${state.points.at(-1).join(", ")}`);
  }

  key(event) {
    const { state, editable } = this.host, chosen = this.show.plane.chosen, many = state.points.length;
    if (!editable || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (steps[event.key] && chosen >= 0) {
      const by = this.show.plane.reach / (event.shiftKey ? 10 : 50);
      state.points[chosen] = state.points[chosen].map((value, k) => round(value + by * steps[event.key][k]));
      this.host.done(`point ${chosen + 1} at ${state.points[chosen].join(", ")}`);
    } else if ((event.key === "." || event.key === ",") && many) this.choose(((chosen + (event.key === "." ? 1 : -1)) % many + many) % many);
    else if (event.key === "+") this.add(1);
    else if (event.key === "-") this.add(-1);
    else if (event.key === "Backspace" || event.key === "Delete") this.remove(chosen);
    else if (event.key === "Escape") this.choose(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
