// The plane: points, neurons, decision regions and what theory draws there. Draws into a canvas, or into a drawing.
import { colours, sizeText } from "./base.js";
import { answer, neuronsAt, ringOf, smallestMargin } from "./neurons.js";

export const OVERLAYS = [
  ["regions", "where the network says + and −", true],
  ["margin", "its margin", true],
  ["paths", "paths of the neurons", true],
  ["predicted", "predicted by a theorem", true],
  ["limit", "limit found", true],
  ["sum", "sums of the two classes", false],
  ["linear", "linear max-margin line", false],
  ["walls", "lines where a neuron stops seeing a point", false],
  ["cones", "cones that catch neurons (S+, S−, dead)", false],
];
const STEPS = 720;

/** What the picture shows at a moment: a mapping from data to pixels, and everything drawn through it. */
export class Plane {
  constructor(node, size) {
    this.node = node;
    this.size = size;
    this.reach = 1;
    this.shown = Object.fromEntries(OVERLAYS.map(([key, , on]) => [key, on]));
    this.lit = new Set();
    this.chosen = -1;
    this.faded = false;
  }

  get middle() { return this.size / 2; }
  get radius() { return this.size / 2 - 30; }

  /** Data of this norm stand on the circle. */
  fit(points) {
    this.reach = 1.12 * Math.max(...points.map(([x, y]) => Math.hypot(x, y)), 0) || 1;
  }

  toPixels([x, y]) { return [this.middle + this.radius * x / this.reach, this.middle - this.radius * y / this.reach]; }

  toData(x, y) { return [(x - this.middle) * this.reach / this.radius, (this.middle - y) * this.reach / this.radius]; }

  /** Draw a moment of a run; `points` replaces those of the run while they are being moved. */
  draw(pen, course, points = null) {
    const c = this.c = colours(this.node), movie = course.movie;
    this.pen = pen;
    this.said = []; // words that stand above everything
    pen.clearRect(0, 0, this.size, this.size);
    pen.lineJoin = "round";
    const at = movie && course.frame(), neurons = movie ? neuronsAt(movie, at) : [];
    pen.globalAlpha = this.faded ? 0.45 : 1;
    this.base = pen.globalAlpha;
    if (movie) {
      const f = answer(movie, neurons);
      if (movie.flat && this.shown.regions) this.regions(movie, f);
      if (movie.flat && this.shown.margin) this.margins(movie, f);
    }
    this.axes(c);
    if (movie) {
      if (this.shown.cones) this.cones(movie);
      if (this.shown.walls) this.walls(points ?? movie);
      this.rays(movie);
      if (this.shown.paths) this.paths(movie, at);
      this.arrows(movie, neurons);
      this.kinks(movie, course);
      this.rings(movie);
    }
    pen.globalAlpha = 1;
    this.samples(points ?? movie);
    if (movie) this.key(movie);
    for (const { words, x, y, look } of this.said) this.text(words, x, y, look);
  }

  alpha(part) { this.pen.globalAlpha = part * this.base; }

  line(points, { colour, width = 1, dash = [], close = false }) {
    const pen = this.pen;
    pen.setLineDash(dash);
    pen.lineWidth = width;
    pen.strokeStyle = colour;
    pen.beginPath();
    points.forEach(([x, y], k) => k ? pen.lineTo(x, y) : pen.moveTo(x, y));
    if (close) pen.closePath();
    pen.stroke();
    pen.setLineDash([]);
  }

  text(words, x, y, { colour = this.c.ink, font = "12px", align = "center", halo = true } = {}) {
    const pen = this.pen;
    pen.font = `${font} system-ui, "Liberation Sans", sans-serif`;
    pen.textAlign = align;
    pen.textBaseline = "middle";
    if (halo) {
      pen.strokeStyle = this.c.paper;
      pen.lineWidth = 3.5;
      pen.strokeText(words, x, y);
    }
    pen.fillStyle = colour;
    pen.fillText(words, x, y);
  }

  axes(c) {
    const { middle, radius } = this, edge = this.size;
    this.line([[0, middle], [edge, middle]], { colour: c.line });
    this.line([[middle, 0], [middle, edge]], { colour: c.line });
    this.pen.strokeStyle = c.soft;
    this.pen.lineWidth = 1;
    this.pen.beginPath();
    this.pen.arc(middle, middle, radius, 0, 2 * Math.PI);
    this.pen.stroke();
  }

  /** Colour the plane by what the network says: cones without a bias, pixels with one. */
  regions(movie, f) {
    const { pen, middle, size } = this, far = size;
    if (movie.bias !== null) {
      const cells = 90, step = size / cells;
      for (let i = 0; i < cells; i++) {
        for (let k = 0, from = 0, last = 0; k <= cells; k++) {
          const value = k < cells ? f(...this.toData((k + 0.5) * step, (i + 0.5) * step)) : NaN;
          const side = Number.isNaN(value) ? NaN : Math.sign(value);
          if (side === last) continue;
          if (last) {
            pen.fillStyle = last > 0 ? this.c["plus-tint"] : this.c["minus-tint"];
            pen.fillRect(from * step, i * step, (k - from) * step + 0.5, step + 0.5);
          }
          from = k;
          last = side;
        }
      }
      return;
    }
    const values = Array.from({ length: STEPS }, (_, k) => {
      const turn = 2 * Math.PI * (k + 0.5) / STEPS;
      return f(Math.cos(turn), Math.sin(turn));
    });
    const zero = 1e-9 * Math.max(...values.map(Math.abs));
    const side = k => Math.abs(values[k % STEPS]) <= zero ? 0 : Math.sign(values[k % STEPS]);
    let first = 0;
    while (first < STEPS && side(first) === side(first + STEPS - 1)) first++;
    for (let k = 0; k < STEPS;) {
      let end = k + 1;
      while (end < STEPS && side(first + end) === side(first + k)) end++;
      const sign = side(first + k);
      if (sign) {
        pen.fillStyle = sign > 0 ? this.c["plus-tint"] : this.c["minus-tint"];
        pen.beginPath();
        pen.moveTo(middle, middle);
        for (let step = k; step <= end; step += Math.min(45, Math.max(end - step, 1))) {
          const turn = 2 * Math.PI * (first + step) / STEPS;
          pen.lineTo(middle + far * Math.cos(turn), middle - far * Math.sin(turn));
        }
        pen.closePath();
        pen.fill();
      }
      k = end;
    }
  }

  /** The curves on which the network has the value of its smallest margin. */
  margins(movie, f) {
    const least = smallestMargin(movie, f);
    if (!(least > 0) || movie.bias !== null) return;
    for (const side of [1, -1]) {
      let part = [];
      const flush = () => {
        if (part.length > 1) this.line(part, { colour: side > 0 ? this.c.plus : this.c.minus, width: 1.4, dash: [3, 4] });
        part = [];
      };
      for (let k = 0; k <= STEPS; k++) {
        const turn = 2 * Math.PI * k / STEPS, value = side * f(Math.cos(turn), Math.sin(turn));
        const out = value > 0 ? least / value : Infinity;
        if (out < 3 * this.reach) part.push(this.toPixels([out * Math.cos(turn), out * Math.sin(turn)]));
        else flush();
      }
      flush();
    }
  }

  /** A word on what is what, in the corner. */
  key(movie) {
    const look = { colour: this.c.soft, font: "11px", align: "left" };
    const slides = movie.events.some(event => event[3] === "slide"), dead = movie.dead.some(from => from >= 0);
    this.text(`arrows: neurons (blue vote +, orange −)${this.shown.regions && movie.flat && this.size > 410 ? "; colour: what the network says" : ""}`, 8, 11, look);
    this.text([slides ? "◇ begins to slide" : "", dead ? "× dead" : ""].filter(Boolean).join("   "), 8, this.size - 11, look);
  }

  cones(movie) {
    const { pen, middle, radius } = this;
    const looks = { plus: [this.c.plus, "S+"], minus: [this.c.minus, "S−"], dead: [this.c.rest, "dead"] };
    for (const [kind, from, to] of movie.cones) {
      const [colour, words] = looks[kind];
      pen.strokeStyle = colour;
      pen.lineWidth = 9;
      this.alpha(kind === "dead" ? 0.45 : 0.6);
      pen.beginPath();
      pen.arc(middle, middle, radius + 7, -to, -from);
      pen.stroke();
      this.alpha(0.1);
      pen.fillStyle = colour;
      pen.beginPath();
      pen.moveTo(middle, middle);
      pen.arc(middle, middle, radius, -to, -from);
      pen.closePath();
      pen.fill();
      this.alpha(1);
      const turn = (from + to) / 2;
      this.text(words, middle + (radius + 19) * Math.cos(turn), middle - (radius + 19) * Math.sin(turn), { colour, font: "600 12px" });
    }
  }

  walls(source) {
    if (source.points.length > 60 || source.bias) return;
    this.alpha(0.7);
    for (const [x, y] of source.points) {
      const length = Math.hypot(x, y);
      if (!length) continue;
      const [u, v] = [-y / length * this.radius, x / length * this.radius];
      this.line([[this.middle - u, this.middle + v], [this.middle + u, this.middle - v]], { colour: this.c.soft, dash: [1, 4] });
    }
    this.alpha(1);
  }

  rays(movie) {
    const { middle, radius } = this;
    const looks = {
      sum: { colour: () => this.c.sum, width: 2, dash: [2, 3], words: sign => sign > 0 ? "sum of +" : "sum of −", out: 0.8 },
      limit: { colour: sign => sign > 0 ? this.c.plus : this.c.minus, width: 2.4, dash: [], words: () => "limit", out: 1 },
      predicted: { colour: () => this.c.predicted, width: 2.4, dash: [9, 6], words: () => "predicted", out: 1 },
    };
    const said = [];
    for (const [kind, sign, x, y] of movie.rays) {
      if (!this.shown[kind] || Math.hypot(x, y) < 1e-6) continue;
      if (kind === "linear") {
        const far = 2 * this.size;
        this.line([[middle - far * y, middle - far * x], [middle + far * y, middle + far * x]], { colour: this.c.linear, width: 2, dash: [12, 4, 2, 4] });
        this.said.push({ words: "linear max-margin", x: middle - 0.75 * radius * y + 4, y: middle - 0.75 * radius * x, look: { colour: this.c.linear, font: "11px" } });
        continue;
      }
      const look = looks[kind];
      this.alpha(kind === "limit" ? 0.65 : 1);
      const end = [middle + look.out * radius * x, middle - look.out * radius * y];
      this.line([[middle, middle], end], { colour: look.colour(sign), width: look.width, dash: look.dash });
      this.alpha(1);
      const spot = [middle + (look.out * radius + 12) * x, middle - (look.out * radius + 12) * y];
      const near = said.find(other => Math.hypot(other.spot[0] - spot[0], other.spot[1] - spot[1]) < 30);
      if (near) near.words.add(look.words(sign));
      else said.push({ spot, words: new Set([look.words(sign)]), colour: look.colour(sign) });
    }
    if (said.length > 8) return;
    for (const { spot, words, colour } of said) {
      const text = [...words].join(" = "), room = 3.2 * text.length;
      const x = Math.min(Math.max(spot[0], room + 2), this.size - room - 2);
      this.said.push({ words: text, x, y: Math.min(Math.max(spot[1], 8), this.size - 8), look: { colour, font: "600 11px" } });
    }
  }

  spot(movie, k, j) {
    const ring = ringOf(movie), out = this.radius * ring.radius(movie.sizes[k][j]) / 1000;
    return [this.middle + out * movie.neurons[k][j][0], this.middle - out * movie.neurons[k][j][1]];
  }

  paths(movie, at) {
    this.alpha(0.3);
    for (let j = 0; j < movie.neurons[0].length; j++) {
      const points = [];
      for (let k = 0; k <= at.before; k++) points.push(this.spot(movie, k, j));
      this.line(points, { colour: this.signColour(movie.signs[at.near][j]), width: 1 });
    }
    this.alpha(1);
  }

  signColour(sign) { return sign > 0 ? this.c.plus : sign < 0 ? this.c.minus : this.c.rest; }

  /** A neuron: an arrow from the middle; full head for a > 0, open head for a < 0, a grey cross once it is dead. */
  arrows(movie, neurons) {
    const ring = ringOf(movie), { pen, middle, radius } = this, many = neurons.length > 60;
    for (const one of neurons) {
      const out = radius * ring.radius(one.size), x = middle + out * one.x, y = middle - out * one.y;
      const colour = one.dead ? this.c.rest : this.signColour(one.sign);
      this.alpha(one.dead ? 0.35 : many ? 0.25 : 0.5);
      this.line([[middle, middle], [x, y]], { colour, width: one.dead ? 0.8 : 1.3, dash: one.sign < 0 ? [5, 3] : [] });
      this.alpha(one.dead ? 0.6 : 0.95);
      if (one.dead) {
        this.line([[x - 3, y - 3], [x + 3, y + 3]], { colour, width: 1.6 });
        this.line([[x - 3, y + 3], [x + 3, y - 3]], { colour, width: 1.6 });
        continue;
      }
      const length = Math.hypot(one.x, one.y) || 1, u = one.x / length, v = -one.y / length, s = 5.5;
      pen.beginPath();
      pen.moveTo(x + s * u, y + s * v);
      pen.lineTo(x - s * u - s * 0.7 * v, y - s * v + s * 0.7 * u);
      pen.lineTo(x - s * u + s * 0.7 * v, y - s * v - s * 0.7 * u);
      pen.closePath();
      pen.fillStyle = one.sign > 0 ? colour : this.c.paper;
      pen.fill();
      pen.strokeStyle = colour;
      pen.lineWidth = 1.4;
      pen.stroke();
    }
    this.alpha(1);
  }

  /** Where a neuron began to slide (diamond) or died (cross in a circle), as far as that lies behind. */
  kinks(movie, course) {
    const { pen } = this;
    for (const [moment, j, , kind] of movie.events) {
      if (j < 0 || moment > course.where || !["slide", "die"].includes(kind)) continue;
      const [x, y] = this.spot(movie, course.frame(moment).near, j);
      pen.strokeStyle = this.c.mark;
      pen.fillStyle = this.c.paper;
      pen.lineWidth = 1.5;
      pen.beginPath();
      if (kind === "slide") {
        pen.moveTo(x, y - 4.5);
        pen.lineTo(x + 4.5, y);
        pen.lineTo(x, y + 4.5);
        pen.lineTo(x - 4.5, y);
        pen.closePath();
      } else pen.arc(x, y, 4, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    }
  }

  rings(movie) {
    const ring = ringOf(movie), { pen, middle, radius } = this;
    for (const size of ring.high > ring.low ? [ring.low, ring.high] : [ring.high]) {
      const out = radius * ring.radius(size);
      this.alpha(0.5);
      pen.setLineDash([2, 4]);
      pen.strokeStyle = this.c.soft;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.arc(middle, middle, out, 0, 2 * Math.PI);
      pen.stroke();
      pen.setLineDash([]);
      this.alpha(1);
      const words = sizeText(size).replace(/\^(-?[\d]+)/, (_, power) => [...power].map(s => "⁰¹²³⁴⁵⁶⁷⁸⁹"[s] ?? "⁻").join(""));
      this.text(`|w| = ${words}`, middle + 3, middle + out - 7, { colour: this.c.soft, font: "10.5px", align: "left" });
    }
  }

  samples(source) {
    if (!source) return;
    const { pen } = this, many = source.points.length > 60, side = many ? 6 : 10;
    source.points.forEach((point, i) => {
      const [x, y] = this.toPixels(point), plus = source.labels[i] > 0;
      const number = source.indices ? source.indices[i] : i;
      pen.globalAlpha = many ? 0.7 : 1;
      if (this.lit.has(number) || this.chosen === number) {
        pen.beginPath();
        pen.arc(x, y, side + 6, 0, 2 * Math.PI);
        pen.fillStyle = this.c.paper;
        pen.fill();
        pen.lineWidth = 3;
        pen.strokeStyle = this.lit.has(number) ? this.c.mark : this.c.ink;
        pen.stroke();
      }
      pen.beginPath();
      if (plus) pen.arc(x, y, side, 0, 2 * Math.PI);
      else { pen.moveTo(x - side, y - side); pen.lineTo(x + side, y - side); pen.lineTo(x + side, y + side); pen.lineTo(x - side, y + side); pen.closePath(); }
      pen.fillStyle = plus ? this.c.plus : this.c.minus;
      pen.fill();
      pen.lineWidth = 1.5;
      pen.strokeStyle = this.c.paper;
      pen.stroke();
      const arm = side * 0.58;
      this.line([[x - arm, y], [x + arm, y]], { colour: this.c.paper, width: 2.2 });
      if (plus) this.line([[x, y - arm], [x, y + arm]], { colour: this.c.paper, width: 2.2 });
    });
    pen.globalAlpha = 1;
  }
}
