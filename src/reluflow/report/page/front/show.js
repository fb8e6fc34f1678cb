// The moving picture with its controls: a canvas, the bar of time, what is drawn over it.
import { clamp, colours, fill, h, raised } from "./base.js";
import { Course } from "./course.js";
import { OVERLAYS, Plane } from "./plane.js";

const SPEEDS = [0.25, 0.5, 1, 2, 4];
const SHORT = { "neurons turn": "turn", "the network grows": "grow", "directions settle": "settle" };
const STAGE_WORDS = {
  "neurons turn": "The network is still tiny; every neuron turns on its own.",
  "the network grows": "Neurons grow and take over, and the loss falls as far as it can.",
  "directions settle": "Every point is on its side; now only directions matter.",
};

/** A picture: `stage` holds the canvas, `set` shows a run, `points` are those of an editor. */
export class Show {
  constructor(node, { label = "neurons over time", square = 560 } = {}) {
    this.course = new Course();
    this.points = null;
    this.canvas = h("canvas", { role: "img", "aria-label": label, tabindex: 0 });
    this.plane = new Plane(node, square);
    this.words = h("p", { class: "stage-words", "aria-live": "off" });
    this.play = h("button", { type: "button", class: "play", onclick: () => this.course.toggle() }, "▶ Play");
    this.slider = h("input", { type: "range", min: 0, max: 1000, step: 1, value: 0, "aria-label": "time of the run", oninput: () => this.course.seek(this.slider.value / 1000) });
    this.track = h("canvas", { class: "track", "aria-hidden": "true" });
    this.readout = h("p", { class: "readout", role: "status", "aria-live": "off" });
    const speed = h("select", { "aria-label": "speed", onchange: () => { this.course.speed = Number(speed.value); } }, SPEEDS.map(s => h("option", { value: s, selected: s === 1 }, `${s}×`)));
    const loop = h("input", { type: "checkbox", onchange: () => { this.course.loop = loop.checked; } });
    const step = (forward, sign, words) => h("button", { type: "button", "aria-label": words, title: words, onclick: () => this.course.step(forward) }, sign);
    this.stage = h("div", { class: "stage" }, this.canvas);
    fill(node, this.stage, h("div", { class: "timebar" }, this.track, this.slider),
      h("div", { class: "controls" }, this.play, step(false, "◀ event", "to the event before"), step(true, "event ▶", "to the next event"), speed, h("label", {}, loop, " loop"), this.readout), this.words);
    this.track.addEventListener("pointerdown", event => this.drag(event));
    this.course.listen(() => this.draw());
    new ResizeObserver(() => this.resize()).observe(this.stage);
    this.resize();
  }

  drag(event) {
    const go = move => {
      const box = this.track.getBoundingClientRect();
      this.course.seek((move.clientX - box.left) / box.width);
    };
    go(event);
    this.track.setPointerCapture(event.pointerId);
    this.track.addEventListener("pointermove", go);
    this.track.addEventListener("pointerup", () => this.track.removeEventListener("pointermove", go), { once: true });
  }

  set(movie, fit = true) {
    if (movie && fit) this.plane.fit(movie.points);
    this.course.set(movie);
  }

  resize() {
    const width = this.stage.clientWidth;
    if (!width) return;
    this.plane.size = width;
    sharpen(this.canvas, width, width);
    sharpen(this.track, this.track.parentNode.clientWidth, 30);
    this.draw();
  }

  draw() {
    const pen = this.canvas.getContext("2d");
    this.plane.draw(pen, this.course, this.points);
    const { movie, where, running } = this.course;
    this.slider.value = Math.round(1000 * where);
    this.play.textContent = running ? "⏸ Pause" : "▶ Play";
    this.play.disabled = !movie;
    this.bar(movie, where);
    if (!movie) { fill(this.readout); fill(this.words); return; }
    const near = this.course.frame().near;
    fill(this.readout, raised(`${movie.times[near]}, loss ${movie.losses[near]}`));
    const lost = movie.dead.filter(from => from >= 0 && near >= from).length;
    const dead = lost ? ` ${lost} of ${movie.drawn[0]} neurons ${lost > 1 ? "are" : "is"} dead (×): no point moves ${lost > 1 ? "them" : "it"}.` : "";
    this.words.textContent = (STAGE_WORDS[this.course.stage()] ?? "") + dead;
    this.slider.setAttribute("aria-valuetext", `${movie.times[near]}: ${this.course.stage()}`);
  }

  bar(movie, where) {
    const pen = this.track.getContext("2d"), width = this.track.clientWidth, c = colours(this.track);
    pen.clearRect(0, 0, width, 30);
    const tints = { "neurons turn": c["minus-tint"], "the network grows": c["plus-tint"], "directions settle": c["dead-tint"] };
    pen.font = '11px system-ui, "Liberation Sans", sans-serif';
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    for (const [name, from, to] of movie?.stages ?? []) {
      pen.fillStyle = tints[name];
      pen.fillRect(width * from, 4, width * (to - from), 22);
      pen.fillStyle = c.ink;
      const fits = [name, SHORT[name]].find(words => width * (to - from) > pen.measureText(words).width + 6);
      if (fits) pen.fillText(fits, width * (from + to) / 2, 18);
    }
    pen.strokeStyle = c.soft;
    pen.lineWidth = 1;
    pen.strokeRect(0.5, 4.5, width - 1, 21);
    pen.strokeStyle = c.ink;
    pen.globalAlpha = 0.55;
    pen.beginPath();
    for (const event of movie?.events ?? []) { pen.moveTo(width * event[0], 4); pen.lineTo(width * event[0], 10); }
    pen.stroke();
    pen.globalAlpha = 1;
    pen.fillStyle = c.ink;
    const x = clamp(width * where, 1.5, width - 1.5);
    pen.fillRect(x - 1.5, 0, 3, 30);
  }
}

/** Make a canvas sharp on any screen. */
export function sharpen(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
}

/** Switches for what is drawn over the plane. */
export function overlaysNode(show, changed = () => {}) {
  return h("fieldset", { class: "overlays" }, h("legend", {}, "Show"), OVERLAYS.map(([key, words]) => {
    const box = h("input", { type: "checkbox", "data-overlay": key, onchange: () => { show.plane.shown[key] = box.checked; show.draw(); changed(); } });
    box.checked = show.plane.shown[key];
    return h("label", {}, box, h("i", { class: `swatch ${key}` }), ` ${words}`);
  }));
}

/** What the signs in the picture mean. */
export function legendNode() {
  return h("p", { class: "legend" }, "Points: ", h("b", { class: "plus" }, "● +"), " and ", h("b", { class: "minus" }, "■ −"),
    ". Arrows are neurons: the direction is where a neuron looks, the length its size (logarithmic); ",
    h("b", { class: "plus" }, "full blue"), " heads vote +, ", h("b", { class: "minus" }, "open orange"), " heads vote −, × is dead. ◇ marks where a neuron began to slide along a line.");
}
