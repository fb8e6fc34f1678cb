// Elements, colours and numbers: what all modules use.

const SVG_SPACE = "http://www.w3.org/2000/svg";

/** Make an element; attributes that begin with "on" are listeners, children are nodes or texts. */
export function h(tag, attributes = {}, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

/** Make an element of a drawing. */
export function svgNode(tag, attributes = {}, ...children) {
  return dress(document.createElementNS(SVG_SPACE, tag), attributes, children);
}

function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== ""));
  return node;
}

/** Replace what is in a node. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== ""));
  return node;
}

const COLOUR_NAMES = ["plus", "minus", "rest", "ink", "soft", "line", "paper", "plus-tint", "minus-tint", "dead-tint",
  "predicted", "limit", "linear", "sum", "mark"];

/** Read the colours of the stylesheet as they are now, light or dark. */
export function colours(node) {
  const given = getComputedStyle(node);
  return Object.fromEntries(COLOUR_NAMES.map(name => [name, given.getPropertyValue(`--${name}`).trim()]));
}

const SIGNS = [[/\btheta\b/g, "θ"], [/\bphi\b/g, "φ"], [/\bgamma\b/g, "γ"], [/\bmu\b/g, "μ"], [/\beps\b/g, "ε"], [/\balpha\b/g, "α"], [/\blambda\b/g, "λ"], [/\bzeta_/g, "ζ_"],
  [/<=/g, "≤"], [/>=/g, "≥"], [/!=/g, "≠"], [/->/g, "→"], [/\|\^2\b/g, "|²"], [/\boo\b/g, "∞"], [/_i\b/g, "ᵢ"], [/_j\b/g, "ⱼ"], [/_k\b/g, "ₖ"], [/\b([wxz])\+(?=[.|,;) ]|$)/g, "$1₊"], [/\b([wxz])-(?=[.|,;)]|$)/g, "$1₋"]];

/** Be light or dark as the system is, until somebody chooses (`chosen`); tell when that changes. */
export function followTheme(page, changed) {
  const night = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    if (!page.dataset.chosen) page.dataset.theme = night.matches ? "dark" : "light";
    changed();
  };
  night.addEventListener("change", follow);
  follow();
}

/** Text as people write it: Greek letters, and raised exponents for e^-3000 and 1e-05. */
export function raised(text) {
  const parts = [];
  let rest = SIGNS.reduce((words, [from, to]) => words.replace(from, to), text).replace(/(\d)e([+-]?)0*(\d+)/g, (_, digit, sign, power) => `${digit}·10^${sign === "-" ? "-" : ""}${power}`)
    .replace(/(^|[ (])1·10\^/g, "$110^");
  for (let found; (found = /(e|10)\^(-?[0-9.]+)/.exec(rest));) {
    parts.push(rest.slice(0, found.index) + found[1], h("sup", {}, found[2].replace("-", "−")));
    rest = rest.slice(found.index + found[0].length);
  }
  return [...parts, rest];
}

/** A positive number given by its logarithm. */
export function sizeText(log) {
  if (log <= -1e8) return "0";
  if (Math.abs(log) >= 690) return `e^${Math.round(log)}`;
  const power = Math.floor(log / Math.LN10 + 1e-9);
  if (Math.abs(power) < 4) return Number(Math.exp(log).toPrecision(3)).toString();
  const digits = Number(Math.exp(log - power * Math.LN10).toPrecision(2));
  return digits === 1 ? `10^${power}` : `${digits}·10^${power}`;
}

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** The place on an axis that shows both 1e-4 and e to the million, and back: as problem/axis.py. */
export const axisPlace = log => Math.abs(log) <= 10 ? log : Math.sign(log) * (10 + 6 * Math.log10(Math.abs(log) / 10));
export const axisLog = place => Math.abs(place) <= 10 ? place : Math.sign(place) * 10 * 10 ** ((Math.abs(place) - 10) / 6);
