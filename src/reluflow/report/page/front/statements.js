// Words: the headline, the theorems with their verdicts, parts with tables.
import { fill, h, raised } from "./base.js";

const APPLIES = new Map([[true, ["applies", "yes"]], [false, ["no", "no"]], [null, ["undecided", "maybe"]]]);
const OUTCOMES = { seen: "yes", "not seen": "maybe", contradicted: "bad", undecided: "maybe", "": "no" };
const FILTERS = [
  ["main", "main theorems", claim => claim.main],
  ["all", "all statements", () => true],
  ["apply", "that apply", claim => claim.applies === true],
  ["not", "that do not", claim => claim.applies === false],
  ["seen", "seen", claim => claim.outcome === "seen"],
  ["missed", "not seen", claim => claim.outcome === "not seen" || claim.outcome === "contradicted"],
  ["open", "undecided", claim => claim.applies === null || claim.outcome === "undecided"],
];

/** Put the two plain sentences into a node. */
export function sayHeadline(node, words) {
  node.className = `sentence ${words.mood}`;
  fill(node, h("p", {}, h("b", {}, raised(words.headline[0]))), h("p", {}, raised(words.headline[1])));
}

export function tableNode({ columns, rows }) {
  const head = columns.some(Boolean) ? h("thead", {}, h("tr", {}, columns.map(name => h("th", { scope: "col" }, name)))) : null;
  return h("div", { class: "scroll" }, h("table", {}, head, h("tbody", {}, rows.map(row => h("tr", {}, row.map(cell => h("td", {}, raised(cell))))))));
}

/** A titled part: paragraphs, tables, code. */
export function partNode(part, level = "h2") {
  const content = part.content.map(item => {
    if (typeof item === "string") return h("p", {}, raised(item));
    return item.code !== undefined ? h("pre", {}, item.code) : tableNode(item);
  });
  return h("section", { class: "part" }, h(level, {}, part.title), content, part.more ? h("p", { class: "soft" }, part.more) : null);
}

export function cardsNode(cards) {
  return h("div", { class: "cards" }, cards.map(card => h("section", { class: "card" },
    h("h3", {}, h("b", {}, String(card.count)), ` ${card.title}`),
    card.items.length ? h("ul", {}, card.items.map(item => h("li", {}, item.claim ? h("b", {}, `${item.claim} `) : null, raised(item.text), item.needs ? h("span", { class: "needs" }, ` ${item.needs}`) : null))) : h("p", { class: "soft" }, "nothing"),
    card.more ? h("p", { class: "soft" }, `and ${card.more}`) : null)));
}

/** The list of theorems: a verdict each, unfolding to conditions and witnesses; `light` is told which points are meant, `moved` that one
 * was opened or closed. */
export class Claims {
  constructor(node, light = () => {}, moved = () => {}) {
    this.moved = moved;
    this.light = light;
    this.filter = "main";
    this.open = new Set();
    this.claims = [];
    this.list = h("div", { class: "claims" });
    this.buttons = FILTERS.map(([key, words]) => h("button", { type: "button", "data-show": key, "aria-pressed": "false", onclick: () => { this.filter = key; this.draw(); } }, words));
    fill(node, h("div", { class: "filters", role: "group", "aria-label": "which statements" }, this.buttons), this.list);
  }

  set(claims) {
    this.claims = claims;
    this.draw();
  }

  draw() {
    const keep = FILTERS.find(([key]) => key === this.filter)[2];
    this.buttons.forEach(button => button.setAttribute("aria-pressed", String(button.dataset.show === this.filter)));
    // What fails because of the kind of network is farther away than what fails because of the points.
    const far = condition => condition.cells[0] !== "fails" ? 0 : /activation|layer|outputs/.test(condition.cells[2]) ? 20 : 1;
    const order = claim => claim.applies === true ? 0 : claim.applies === null ? 1 : 1 + claim.conditions.reduce((sum, one) => sum + far(one), 0);
    const shown = this.claims.filter(keep).sort((a, b) => order(a) - order(b));
    fill(this.list, shown.length ? shown.map(claim => this.one(claim)) : h("p", { class: "soft" }, "none"));
  }

  one(claim) {
    const [word, mark] = APPLIES.get(claim.applies);
    const inside = h("div");
    const node = h("details", { class: "claim", open: this.open.has(claim.claim) },
      h("summary", {}, h("span", { class: `mark ${mark}` }, word), h("span", { class: "id" }, claim.claim),
        h("span", { class: `mark ${OUTCOMES[claim.outcome]}` }, claim.outcome), h("span", { class: "words" }, raised(claim.text))), inside);
    const unfold = () => { if (node.open && !inside.childNodes.length) fill(inside, this.details(claim)); };
    node.addEventListener("toggle", () => {
      node.open ? this.open.add(claim.claim) : this.open.delete(claim.claim);
      unfold();
      this.moved();
    });
    const failing = claim.conditions.find(c => c.cells[0] === "fails" && c.samples.length);
    if (failing) this.point(node.firstChild, failing.samples);
    unfold();
    return node;
  }

  /** While the pointer or the focus is on a node, light up these points. */
  point(node, samples) {
    for (const [on, off] of [["pointerenter", "pointerleave"], ["focus", "blur"]]) {
      node.addEventListener(on, () => this.light(samples));
      node.addEventListener(off, () => this.light([]));
    }
  }

  details(claim) {
    const conditions = tableNode({ columns: ["verdict", "evidence", "condition", "in words", "value", "witness"], rows: claim.conditions.map(c => c.cells) });
    conditions.querySelectorAll("tbody tr").forEach((row, k) => {
      const { samples, cells } = claim.conditions[k];
      row.classList.add(cells[0].replace(/\W/g, ""));
      if (!samples.length) return;
      row.tabIndex = 0;
      row.classList.add("points");
      this.point(row, samples);
    });
    const parts = [h("p", {}, raised(claim.statement)), conditions];
    if (claim.told) {
      if (claim.told.text) parts.push(h("p", {}, h("b", {}, "Predicted: "), raised(claim.told.text)));
      if (claim.told.bounds.length) parts.push(tableNode({ columns: ["constant", "value"], rows: claim.told.bounds }));
      if (claim.told.needs.length) parts.push(h("p", { class: "needs" }, `Assuming: ${claim.told.needs.join(", ")}.`));
    }
    if (claim.seen.length) parts.push(h("p", {}, h("b", {}, "Observed:")), tableNode({ columns: ["verdict", "in words", "measured", "predicted"], rows: claim.seen }));
    return parts;
  }
}
