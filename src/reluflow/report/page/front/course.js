// The course of a run: which moment is shown, and how it goes on.
import { clamp } from "./base.js";

const WHOLE = 16000; // milliseconds that the whole run takes at speed 1
const SHOWN_EVENTS = new Set(["slide", "die", "origin", "flip", "ridge", "touch", "dead"]);

/** Holds the moment shown, from 0 to 1 in the time of the picture; tells listeners when it moves. */
export class Course {
  constructor() {
    this.movie = null;
    this.where = 0;
    this.speed = 1;
    this.loop = false;
    this.running = false;
    this.listeners = [];
  }

  listen(listener) { this.listeners.push(listener); }

  tell() { this.listeners.forEach(listener => listener(this)); }

  /** Show another run, at the same moment. */
  set(movie) {
    this.movie = movie;
    if (!movie) this.stop();
    this.tell();
  }

  go(where) {
    this.where = clamp(where, 0, 1);
    this.tell();
  }

  seek(where) {
    this.stop();
    this.go(where);
  }

  play() {
    if (this.running || !this.movie) return;
    if (this.where >= 1) this.where = 0;
    this.running = true;
    let last = null;
    const step = now => {
      if (!this.running) return;
      if (last !== null) this.where = Math.min(1, this.where + this.speed * (now - last) / WHOLE);
      last = now;
      if (this.where >= 1 && this.loop) this.where = 0;
      if (this.where >= 1) this.running = false;
      this.tell();
      if (this.running) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
    this.tell();
  }

  stop() {
    if (!this.running) return;
    this.running = false;
    this.tell();
  }

  toggle() { this.running ? this.stop() : this.play(); }

  /** Events that can be stepped to: all, or where there are very many those that tell most. */
  stops() {
    if (!this.movie) return [];
    const all = this.movie.events, telling = all.filter(event => SHOWN_EVENTS.has(event[3]));
    const ends = this.movie.stages.slice(1).map(stage => stage[1]);
    return [...new Set([0, ...(all.length > 60 && telling.length ? telling : all).map(event => event[0]), ...ends, 1])]
      .sort((a, b) => a - b);
  }

  step(forward) {
    const stops = this.stops(), far = 1e-4;
    const next = forward ? stops.find(stop => stop > this.where + far) : stops.reverse().find(stop => stop < this.where - far);
    this.seek(next ?? (forward ? 1 : 0));
  }

  /** The two frames around a moment, and how far it is between them. */
  frame(where = this.where) {
    const moments = this.movie.moments;
    let low = 0, high = moments.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (moments[middle] <= where) low = middle; else high = middle;
    }
    const gap = moments[high] - moments[low];
    const part = gap > 0 ? clamp((where - moments[low]) / gap, 0, 1) : 1;
    return { before: low, after: high, part, near: part < 0.5 ? low : high };
  }

  /** The moment on the time axis of the charts, from 0 to 1. */
  place() {
    if (!this.movie) return 0;
    const { before, after, part } = this.frame();
    return this.movie.places[before] + part * (this.movie.places[after] - this.movie.places[before]);
  }

  /** The moment that belongs to a place of the charts. */
  momentOf(place) {
    const { places, moments } = this.movie;
    let k = places.findIndex(other => other >= place);
    if (k < 0) return 1;
    if (k === 0) return moments[0];
    const gap = places[k] - places[k - 1];
    return moments[k - 1] + (gap > 0 ? (place - places[k - 1]) / gap : 1) * (moments[k] - moments[k - 1]);
  }

  stage() {
    if (!this.movie) return "";
    const found = this.movie.stages.find(stage => this.where <= stage[2]) ?? this.movie.stages.at(-1);
    return found ? found[0] : "";
  }
}
