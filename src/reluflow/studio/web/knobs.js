// The settings: width, slope, scale and the like.
import { clamp, fill, h, raised, sizeText } from "./base.js";

// Places of the slider of scales, and the powers of ten there: most of its way is where people are.
const SCALE_STOPS = [[0, -300], [15, -30], [35, -8], [70, -3], [100, 1]];

function between(value, from, to) {
  const k = clamp(SCALE_STOPS.findIndex(stop => stop[from] >= value), 1, SCALE_STOPS.length - 1);
  const [a, b] = [SCALE_STOPS[k - 1], SCALE_STOPS[k]];
  return a[to] + (clamp(value, SCALE_STOPS[0][from], SCALE_STOPS.at(-1)[from]) - a[from]) / (b[from] - a[from]) * (b[to] - a[to]);
}

export const scaleAt = place => between(place, 0, 1) * Math.LN10;
export const placeOf = log => between(log / Math.LN10, 1, 0);

const WORDS = {
  scheme: "Weights", loss: "Loss", train: "Layers that learn", reduction: "Over the points",
};
const CHOICES = {
  loss: [["logistic", "logistic"], ["exponential", "exponential"]],
  train: [["both", "both"], ["first", "first"]],
  reduction: [["mean", "mean"], ["sum", "sum"]],
};

/** Build the knobs; `changed` is told the name and the new value, `done` when a slider is let go. */
export function knobsNode(schemes, changed, done) {
  const parts = {};
  const slider = (key, words, min, max, step, read) => {
    const out = h("output"), input = h("input", { type: "range", min, max, step, "data-knob": key, "aria-label": words });
    input.addEventListener("input", () => changed(key, read(Number(input.value))));
    input.addEventListener("change", () => done(key));
    parts[key] = { input, out };
    return h("label", {}, words, out, input);
  };
  const choice = (key, options) => {
    const input = h("select", { "data-knob": key, onchange: () => { changed(key, input.value); done(key); } }, options.map(([value, words]) => h("option", { value }, words)));
    parts[key] = { input };
    return h("label", {}, WORDS[key], input);
  };
  const seed = h("input", { type: "number", min: 0, max: 999999, step: 1, "data-knob": "seed", "aria-label": "seed of the draw", onchange: () => { changed("seed", clamp(Math.round(Number(seed.value)) || 0, 0, 999999)); done("seed"); } });
  const again = h("button", { type: "button", onclick: () => { changed("seed", (Number(seed.value) + 1) % 1000000); done("seed"); } }, "draw anew");
  parts.seed = { input: seed };
  const bias = h("input", { type: "checkbox", "data-knob": "bias", onchange: () => { changed("bias", bias.checked ? 1 : null); done("bias"); } });
  parts.bias = { input: bias };
  const node = h("div", { class: "knobs" },
    slider("log_scale", "Size of the start", 0, 100, 0.5, scaleAt), slider("width", "Neurons", 1, 200, 1, Number), slider("slope", "Leak (slope below 0)", 0, 1, 0.05, Number),
    h("label", {}, h("span", {}, "Seed ", seed), again), choice("scheme", schemes.map(name => [name, name])), choice("train", CHOICES.train), choice("loss", CHOICES.loss), choice("reduction", CHOICES.reduction),
    h("label", {}, "Bias (column of ones)", bias));
  return {
    node,
    show(state) {
      parts.log_scale.input.value = placeOf(state.log_scale);
      const size = sizeText(state.log_scale);
      fill(parts.log_scale.out, raised(size));
      parts.log_scale.input.setAttribute("aria-valuetext", size);
      parts.width.input.value = state.width;
      parts.width.out.textContent = state.width;
      parts.slope.input.value = state.slope;
      parts.slope.out.textContent = state.slope ? `${state.slope}` : "0, ReLU";
      seed.value = state.seed;
      for (const key of ["scheme", "loss", "train", "reduction"]) parts[key].input.value = state[key];
      bias.checked = state.bias !== null;
      bias.disabled = state.points.length > 0 && state.points[0].length !== 2;
      for (const key of ["width", "scheme", "seed"]) parts[key].input.disabled = Boolean(state.network);
      again.disabled = Boolean(state.network);
    },
  };
}
