// The network of a frame: where its neurons are, and what it answers in the plane.
import { axisPlace } from "./base.js";

const NOTHING = -1e8;

/** Neurons between two frames: place in the plane (of the unit circle), size, strength a|w|, sign. */
export function neuronsAt(movie, { before, after, part, near }) {
  const a = movie.neurons[before], b = movie.neurons[after], found = [];
  for (let j = 0; j < a.length; j++) {
    const x = (a[j][0] + part * (b[j][0] - a[j][0])) / 1000, y = (a[j][1] + part * (b[j][1] - a[j][1])) / 1000;
    const between = name => {
      const from = movie[name][before][j], to = movie[name][after][j];
      return from <= NOTHING || to <= NOTHING ? movie[name][near][j] : from + part * (to - from);
    };
    const size = between("sizes");
    found.push({
      x, y, size, sign: movie.signs[near][j], strength: size + between("outs"),
      offset: movie.offsets ? (movie.offsets[before][j] + part * (movie.offsets[after][j] - movie.offsets[before][j])) / 1000 : 0,
      dead: movie.dead[j] >= 0 && near >= movie.dead[j],
    });
  }
  return found;
}

/** The network as a function of the plane, up to a positive factor. */
export function answer(movie, neurons) {
  const top = Math.max(...neurons.map(one => one.strength), NOTHING);
  const active = neurons.filter(one => one.sign && one.strength > top - 60)
    .map(one => [one.x, one.y, one.offset, one.sign * Math.exp(one.strength - top)]);
  return (x, y, constant = 1) => {
    let sum = 0;
    for (const [u, v, c, a] of active) {
      const z = u * x + v * y + c * constant;
      sum += a * (z > 0 ? z : movie.slope * z);
    }
    return sum;
  };
}

/** How far outward a neuron of a size stands: from the smallest to the largest of the run. */
export function ringOf(movie) {
  if (movie.ring) return movie.ring;
  let low = Infinity, high = -Infinity;
  for (const frame of movie.sizes) for (const size of frame) if (size > NOTHING) {
    low = Math.min(low, size);
    high = Math.max(high, size);
  }
  const [a, b] = [axisPlace(low), axisPlace(high)];
  movie.ring = { low, high, radius: size => size <= NOTHING ? 0 : 0.25 + 0.75 * (b > a ? (axisPlace(size) - a) / (b - a) : 1) };
  return movie.ring;
}

/** Whether every point is on its side, and the smallest margin in the units of `answer`. */
export function smallestMargin(movie, f) {
  let least = Infinity;
  movie.points.forEach(([x, y], i) => { least = Math.min(least, movie.labels[i] * f(x, y)); });
  return least;
}
