// A pen that writes a drawing (SVG) instead of painting: the part of a canvas that the plane uses.
import { svgNode } from "./base.js";

export class SvgPen {
  constructor(size) {
    this.drawing = svgNode("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${size} ${size}`, width: size, height: size });
    Object.assign(this, { globalAlpha: 1, fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, font: "12px sans-serif", textAlign: "start", dash: [], d: "" });
  }

  clearRect() { this.drawing.replaceChildren(); }
  setLineDash(dash) { this.dash = dash; }
  beginPath() { this.d = ""; }
  moveTo(x, y) { this.d += `M${x.toFixed(2)} ${y.toFixed(2)}`; }
  lineTo(x, y) { this.d += `L${x.toFixed(2)} ${y.toFixed(2)}`; }
  closePath() { this.d += "Z"; }

  arc(x, y, r, from, to) {
    const point = turn => `${(x + r * Math.cos(turn)).toFixed(2)} ${(y + r * Math.sin(turn)).toFixed(2)}`;
    const whole = to - from >= 2 * Math.PI - 1e-9, middle = (from + to) / 2;
    this.d += `${this.d ? "L" : "M"}${point(from)}A${r} ${r} 0 0 1 ${point(middle)}A${r} ${r} 0 0 1 ${point(to)}${whole ? "Z" : ""}`;
  }

  put(tag, attributes, ...children) { this.drawing.append(svgNode(tag, { opacity: this.globalAlpha, ...attributes }, ...children)); }
  fill() { this.put("path", { d: this.d, fill: this.fillStyle }); }
  stroke() { this.put("path", { d: this.d, fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-dasharray": this.dash.join(" ") || null }); }
  fillRect(x, y, width, height) { this.put("rect", { x, y, width, height, fill: this.fillStyle }); }
  fillText(words, x, y) { this.letters(words, x, y, { fill: this.fillStyle }); }
  strokeText(words, x, y) { this.letters(words, x, y, { fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth }); }

  letters(words, x, y, look) {
    const anchor = { center: "middle", left: "start", right: "end" }[this.textAlign] ?? "start";
    this.put("text", { x, y, style: `font: ${this.font}`, "text-anchor": anchor, "dominant-baseline": "central", ...look }, words);
  }

  text() { return new XMLSerializer().serializeToString(this.drawing); }
}
