// Charts over time and bars, from the documents of report/page/curves.py.
import { axisLog, clamp, fill, h, raised, sizeText, svgNode } from "./base.js";

const FINE = 10000;

/** Draw a chart for a width in pixels, so that its letters keep their size on a phone. */
export function chartNode(chart, width, height = 210) {
  const frame = { left: 54, right: width - 12, top: 10, bottom: height - 42 };
  const across = v => frame.left + (frame.right - frame.left) * v / FINE;
  const down = v => frame.bottom - (frame.bottom - frame.top) * v / FINE;
  const parts = [];
  for (const band of chart.bands ?? []) {
    const [a, b] = [across(clamp(band.from, 0, FINE)), across(clamp(band.to, 0, FINE))];
    parts.push(svgNode("rect", { x: a, y: frame.top, width: Math.max(b - a, 0), height: frame.bottom - frame.top, class: `band ${band.phase}` }));
  }
  if (chart.x.bend !== null) parts.push(svgNode("path", { d: `M${across(chart.x.bend)} ${frame.top}V${frame.bottom}`, class: "bend" }));
  if (chart.marks?.length) parts.push(svgNode("path", { d: chart.marks.map(v => `M${across(v).toFixed(1)} ${frame.top}v5`).join(""), class: "event" }));
  parts.push(...axesOf(chart, frame, across, down));
  for (const level of chart.levels ?? []) parts.push(svgNode("path", { d: `M${frame.left} ${down(level.y).toFixed(1)}H${frame.right}`, class: `curve ${level.style}` }));
  for (const curve of chart.curves ?? []) parts.push(svgNode("path", { d: pathOf(curve, across, down), class: `curve ${curve.style}` }));
  for (const [style, from, to, top, text] of chart.bars ?? []) {
    const [a, b] = [across(from), across(to)];
    parts.push(svgNode("rect", { x: a + 0.5, y: down(top), width: Math.max(b - a - 1, 0.8), height: Math.max(frame.bottom - down(top), 0), class: `bar ${style}` }));
    if (text) parts.push(label((a + b) / 2, down(top) - 5, text));
  }
  const cursor = svgNode("path", { class: "cursor" });
  const drawing = svgNode("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": chart.title }, parts, cursor);
  return { drawing, frame, cursor, down };
}

function pathOf(curve, across, down) {
  let d = "", pen = "M";
  curve.x.forEach((x, k) => {
    const y = curve.y[k];
    if (x === null || y === null) { pen = "M"; return; }
    d += `${pen}${across(x).toFixed(1)} ${down(y).toFixed(1)}`;
    pen = "L";
  });
  return d;
}

function label(x, y, text, { exponent = "", anchor = "middle", style = "tick" } = {}) {
  const power = exponent ? svgNode("tspan", { dy: -4, class: "sup" }, exponent.replace("-", "−")) : null;
  return svgNode("text", { x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor, class: style }, text, power);
}

function axesOf(chart, frame, across, down) {
  const parts = [], middle = (frame.top + frame.bottom) / 2;
  const room = (frame.right - frame.left) / 44, every = Math.max(1, Math.ceil(chart.x.ticks.length / room));
  chart.x.ticks.forEach(([place, text, exponent], k) => {
    if (k % every) return;
    parts.push(svgNode("path", { d: `M${across(place).toFixed(1)} ${frame.bottom}v4`, class: "axis" }));
    parts.push(label(across(place), frame.bottom + 17, text, { exponent }));
  });
  for (const [place, text, exponent] of chart.y.ticks) {
    parts.push(svgNode("path", { d: `M${frame.left} ${down(place).toFixed(1)}H${frame.right}`, class: "grid" }));
    parts.push(label(frame.left - 6, down(place) + 4, text, { exponent, anchor: "end" }));
  }
  parts.push(svgNode("path", { d: `M${frame.left} ${frame.top}V${frame.bottom}H${frame.right}`, class: "axis" }));
  const [words] = chart.x.label.split(" (");
  parts.push(label((frame.left + frame.right) / 2, frame.bottom + 36, frame.right - frame.left < 480 ? words : chart.x.label, { style: "name" }));
  parts.push(svgNode("g", { transform: `rotate(-90 12 ${middle})` }, label(12, middle, chart.y.label, { style: "name" })));
  return parts;
}

/** A value at a place of an axis, in words. */
function valueText(axis, place) {
  const v = axis.range[0] + (axis.range[1] - axis.range[0]) * place / FINE;
  if (axis.scale === "log") return sizeText(axisLog(v));
  return axis.scale === "degrees" ? `${v.toFixed(1)}°` : Number(v.toPrecision(4)).toString();
}

function heightAt(curve, place) {
  let k = curve.x.findIndex(x => x !== null && x >= place);
  if (k < 0) k = curve.x.length - 1;
  return curve.y[k];
}

/** A board of charts that share a cursor with the picture: a click goes there, the pointer reads values. */
export class Board {
  constructor(node, course) {
    this.node = node;
    this.course = course;
    this.charts = [];
    this.drawn = [];
    course?.listen(() => this.move());
    new ResizeObserver(() => this.layout()).observe(node);
  }

  set(charts) {
    this.charts = charts;
    this.width = 0;
    this.layout();
  }

  layout() {
    const total = this.node.clientWidth;
    if (!total || total === this.width) return;
    this.width = total;
    const columns = Math.max(1, Math.floor((total + 16) / 330)), width = Math.floor((total - 16 * (columns - 1)) / columns);
    this.node.style.setProperty("--columns", columns);
    this.drawn = this.charts.map(chart => this.one(chart, width));
    fill(this.node, this.drawn.map(one => one.figure));
    this.move();
  }

  one(chart, width) {
    const { drawing, frame, cursor, down } = chartNode(chart, width), timed = Boolean(chart.marks);
    const note = h("span", { class: "value", "aria-hidden": "true" });
    const key = (chart.key ?? []).map(([style, words]) => h("span", {}, svgNode("svg", { width: 24, height: 8 }, svgNode("path", { d: "M1 4H23", class: `curve ${style}` })), words));
    if (chart.bars) key.push(h("span", {}, h("i", { class: "before" }), "at the start"), h("span", {}, h("i", { class: "after" }), "at the end"));
    const figure = h("figure", { class: "chart" }, h("figcaption", {}, chart.title, note), drawing, key.length ? h("p", { class: "key" }, key) : null);
    if (timed && this.course) this.listenTo(drawing, chart, frame, down, note);
    return { figure, frame, cursor, timed, chart, note };
  }

  listenTo(drawing, chart, frame, down, note) {
    const placeOf = event => {
      const box = drawing.getBoundingClientRect(), x = (event.clientX - box.left) * drawing.viewBox.baseVal.width / box.width;
      return clamp((x - frame.left) / (frame.right - frame.left), 0, 1);
    };
    drawing.classList.add("timed");
    drawing.addEventListener("pointerdown", event => this.course.movie && this.course.seek(this.course.momentOf(placeOf(event))));
    drawing.addEventListener("pointermove", event => {
      const place = FINE * placeOf(event), box = drawing.getBoundingClientRect();
      const y = (event.clientY - box.top) * drawing.viewBox.baseVal.height / box.height;
      if (event.buttons && this.course.movie) this.course.seek(this.course.momentOf(place / FINE));
      const near = chart.curves.map(curve => heightAt(curve, place)).filter(v => v !== null)
        .sort((a, b) => Math.abs(down(a) - y) - Math.abs(down(b) - y))[0];
      if (near !== undefined) fill(note, raised(`${valueText(chart.y, near)} at t = ${valueText(chart.x, place)}`));
    });
    drawing.addEventListener("pointerleave", () => fill(note));
  }

  move() {
    if (!this.course?.movie) return;
    const place = this.course.place();
    for (const { frame, cursor, timed } of this.drawn) {
      if (!timed) continue;
      const x = frame.left + place * (frame.right - frame.left);
      cursor.setAttribute("d", `M${x.toFixed(1)} ${frame.top}V${frame.bottom}`);
    }
  }
}

/** Draw where a network says + and −, as a disc. */
export function discNode({ title, arcs }, movie, reach) {
  const size = 220, half = size / 2, radius = half - 8, parts = [];
  for (const [sign, from, to] of arcs) {
    const style = sign > 0 ? "for-plus" : sign < 0 ? "for-minus" : "for-none";
    if (to - from > 6.28) { parts.push(svgNode("circle", { cx: half, cy: half, r: radius, class: style })); continue; }
    const point = turn => `${(half + radius * Math.cos(turn)).toFixed(1)} ${(half - radius * Math.sin(turn)).toFixed(1)}`;
    parts.push(svgNode("path", { d: `M${half} ${half}L${point(from)}A${radius} ${radius} 0 ${to - from > Math.PI ? 1 : 0} 0 ${point(to)}Z`, class: style }));
  }
  parts.push(svgNode("circle", { cx: half, cy: half, r: radius, class: "rim" }));
  movie.points.forEach(([x, y], i) => {
    const plus = movie.labels[i] > 0, at = [half + radius * x / reach, half - radius * y / reach + 5];
    parts.push(label(...at, plus ? "+" : "−", { style: `point ${plus ? "plus" : "minus"}` }));
  });
  return h("figure", { class: "disc" }, h("figcaption", {}, title), svgNode("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": title }, parts));
}
