// The page of an explanation: the studio frozen at one run.
import { followTheme, h } from "./base.js";
import { Board, discNode } from "./charts.js";
import { cardsNode, Claims, partNode, sayHeadline } from "./statements.js";
import { legendNode, overlaysNode, Show } from "./show.js";

/** Lay out a report. */
export function showReport(root, scene) {
  const { movie, words } = scene;
  sayHeadline(root.querySelector(".sentence"), words);
  root.querySelector(".unseen").remove();
  let show = null;
  if (movie) {
    const picture = h("div", { class: "picture" });
    const drawn = movie.drawn[0] < movie.drawn[1] ? ` ${movie.drawn[0]} of ${movie.drawn[1]} neurons are drawn.` : "";
    root.append(h("div", { class: "movie" }, picture, h("div", {},
      h("h1", {}, words.name), h("p", {}, words.setting), h("p", { class: "soft" }, `Seen in ${movie.words}.${drawn}`), legendNode(), h("div", { id: "overlays" }),
      h("h2", {}, "Prediction and outcome"), h("p", { id: "verdict" }, words.verdict), scene.hints.map(text => h("p", { class: "hint" }, text)))));
    show = new Show(picture);
    show.set(movie);
    root.querySelector("#overlays").replaceWith(overlaysNode(show));
    document.addEventListener("keydown", event => keys(event, show));
  } else root.append(h("h1", {}, words.name), h("p", {}, words.setting), h("p", {}, words.verdict));
  followTheme(document.body, () => show?.draw());
  const board = h("div", { class: "charts" });
  root.append(h("h2", {}, "The run"), h("p", { class: "key" }, scene.phases.map(([name, how]) => h("span", {}, h("i", { class: `band ${name}` }), `${name}: ${how}`)), h("span", {}, "ticks at the top edge: a neuron changes sides")), board);
  new Board(board, show?.course).set([...scene.charts, ...scene.ends]);
  if (scene.regions.length && movie) {
    root.append(h("h2", {}, "Who decides what"), h("p", { class: "soft" }, "Blue: f > 0, orange: f < 0, white: f = 0. Without a bias these regions are cones."),
      h("div", { class: "discs" }, scene.regions.map(region => discNode(region, movie, show.plane.reach))));
  }
  root.append(h("h2", {}, "Verdicts"), cardsNode(words.cards));
  const list = h("div");
  root.append(h("h2", {}, "The theorems"), h("p", { class: "soft" }, `${words.papers}. Open a line for its conditions, witnesses, constants and observations.`), list);
  new Claims(list, samples => light(show, samples)).set(scene.claims);
  root.append(...scene.parts.map(part => partNode(part)));
}

function light(show, samples) {
  if (!show) return;
  show.plane.lit = new Set(samples);
  show.draw();
}

function keys(event, show) {
  if (event.target.matches("input, select, textarea, button, summary") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " ") { event.preventDefault(); show.course.toggle(); }
  if (event.key === "ArrowRight") show.course.step(true);
  if (event.key === "ArrowLeft") show.course.step(false);
  if (event.key === "Home") show.course.seek(0);
  if (event.key === "End") show.course.seek(1);
}
