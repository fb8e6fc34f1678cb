// Lecture mode: the story of a paper in steps.
import { fill, h } from "./base.js";

export class Lecture {
  constructor(lectures, open) {
    this.lectures = lectures;
    this.open = open;
    this.step = null;
    this.words = h("p", { "aria-live": "polite" });
    this.before = h("button", { type: "button", onclick: () => this.move(-1) }, "◀ before");
    this.next = h("button", { type: "button", onclick: () => this.move(1) }, "next ▶");
    this.node = h("div", { class: "lecture", hidden: true }, this.before, this.words, h("span", {}, this.next, " ", h("button", { type: "button", "aria-label": "end the lecture", onclick: () => this.close() }, "✕")));
  }

  all() { return this.lectures.flatMap(lecture => lecture.steps.map((step, k) => ({ lecture, step, k }))); }

  find(name) { return this.all().find(one => one.step.name === name); }

  show(name) {
    const found = this.find(name);
    if (!found) return false;
    this.step = name;
    this.node.hidden = false;
    this.node.parentNode?.classList.add("lecturing");
    const { lecture, step, k } = found;
    fill(this.words, h("b", {}, `${lecture.title}, ${k + 1} of ${lecture.steps.length}. `), step.text);
    const all = this.all(), at = all.findIndex(one => one.step.name === name);
    this.before.disabled = at === 0;
    this.next.disabled = at === all.length - 1;
    return true;
  }

  move(by) {
    if (!this.step) return;
    const all = this.all(), next = all[all.findIndex(one => one.step.name === this.step) + by];
    if (next) this.open(next.step.name);
  }

  close() {
    this.step = null;
    this.node.hidden = true;
    this.node.parentNode?.classList.remove("lecturing");
  }
}
