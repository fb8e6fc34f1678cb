// The studio: points that can be drawn, the run they lead to, and what theory says of it.
import { fill, followTheme, h } from "./base.js";
import { Board } from "./charts.js";
import { Editor } from "./editor.js";
import { knobsNode } from "./knobs.js";
import { Lecture } from "./lecture.js";
import { readLink, writeLink } from "./link.js";
import { OVERLAYS } from "./plane.js";
import { SvgPen } from "./record.js";
import { legendNode, overlaysNode, Show } from "./show.js";
import { cardsNode, Claims, partNode, sayHeadline } from "./statements.js";

const LIVE = 0.06; // seconds that a run may take while a point is moved
const LONG = 20; // seconds that an explanation may take
const PAUSE = 250; // milliseconds without a change after which theory is asked
const MOST_POINTS = 600;
const TABS = [["charts", "Charts"], ["theorems", "Theorems"], ["limit", "Limit and certificate"], ["outcome", "Prediction and outcome"], ["legend", "What is what"]];
const EMPTY_WORDS = { headline: ["Draw some points.", "A click adds a + point, a click with shift a − point. What a network with small weights makes of them is computed while you draw."], mood: "" };

export class StudioApp {
  constructor(root, transport, page, linked = true) {
    Object.assign(this, { root, transport, page, linked, past: [], future: [], version: 0, minus: false, tab: "charts", preset: null, lectureStep: null, latencies: [] });
    this.changed = () => {};
  }

  /** Ask what there is, build the page, open what the link says. */
  async begin() {
    try {
      this.start = await this.transport.opening();
    } catch (error) {
      fill(this.root, h("p", { class: "problem", role: "alert" }, error.message));
      return;
    }
    this.state = structuredClone(this.start.defaults);
    this.build();
    if (this.linked) window.addEventListener("hashchange", () => { if (location.hash !== this.written) this.openLink(); });
    await this.openLink();
  }

  // -- the page ---------------------------------------------------------------------------------------

  build() {
    this.head = h("div", { class: "sentence", "aria-live": "polite" });
    this.trouble = h("p", { class: "problem", role: "alert" });
    this.status = h("p", { class: "soft", role: "status", "aria-live": "polite" });
    this.busy = h("span", { class: "busy", hidden: true }, "computing …");
    this.hintNode = h("div", { class: "empty" }, h("p", {}, "Click: a + point. Shift-click: a − point."), h("p", {}, "Drag to move, right-click to delete."));
    const left = h("div"), picture = h("div", { class: "picture" });
    this.show = new Show(picture, { label: "the plane: points and neurons. Plus and minus keys add points, full stop chooses one, arrows move it, backspace deletes it" });
    this.show.stage.append(this.busy, this.hintNode);
    this.show.course.loop = false;
    this.lecture = new Lecture(this.start.lectures, name => this.openLecture(name));
    left.append(this.tools(), picture, this.trouble, this.status, overlaysNode(this.show, () => this.write()));
    this.knobs = knobsNode(this.start.schemes, (key, value) => this.turn(key, value), () => this.keep());
    const right = h("div", {}, this.knobs.node, this.whatIf(), this.tabsNode());
    fill(this.root, h("div", { class: "studio" }, this.header(), this.lecture.node, this.head, left, right), ...this.dialogNode());
    this.editor = new Editor(this.show, this);
    this.board = new Board(this.panels.charts, this.show.course);
    this.claims = new Claims(this.panels.theorems, samples => this.light(samples), () => this.later());
    fill(this.panels.legend, legendNode(), keysNode());
    this.root.ownerDocument.addEventListener("keydown", event => this.key(event));
    this.show.course.listen(() => this.later());
    this.say(EMPTY_WORDS);
    followTheme(this.page, () => this.show.draw());
  }

  header() {
    const groups = [...new Set(this.start.presets.map(preset => preset.group))];
    this.chooser = h("select", { "aria-label": "open an example", onchange: () => this.chooser.value && this.openPreset(this.chooser.value) },
      h("option", { value: "" }, "Open an example …"), groups.map(group => h("optgroup", { label: group }, this.start.presets.filter(preset => preset.group === group).map(preset => h("option", { value: preset.name }, preset.title.slice(0, 90))))));
    this.chooser.style.maxWidth = "260px";
    const lecture = h("select", { "aria-label": "lecture", onchange: () => { if (lecture.value) this.openLecture(`${lecture.value}-1`); lecture.value = ""; } },
      h("option", { value: "" }, "Lecture …"), this.start.lectures.map(one => h("option", { value: one.name }, `${one.title} (${one.paper.split(",")[0]})`)));
    lecture.style.maxWidth = "150px";
    const exporter = h("select", { "aria-label": "export", onchange: () => { const kind = exporter.value; exporter.value = ""; if (kind) this.export(kind); } },
      h("option", { value: "" }, "Export …"), [["png", "Picture (PNG)"], ["svg", "Picture (SVG)"], ["html", "Report (HTML)"], ["json", "Everything (JSON)"], ["python", "Python that makes it again"], ["csv", "Points (CSV)"], ["link", "Copy the link"]].map(([value, words]) => h("option", { value }, words)));
    this.undoButton = h("button", { type: "button", onclick: () => this.undo(), title: "Ctrl+Z" }, "↶ undo");
    this.redoButton = h("button", { type: "button", onclick: () => this.redo(), title: "Ctrl+Shift+Z" }, "↷ redo");
    const dark = h("button", { type: "button", "aria-label": "light or dark", onclick: () => this.darken() }, "◐");
    return h("header", {}, h("h1", {}, "reluflow studio"), this.chooser, lecture, this.undoButton, this.redoButton, h("span", { class: "gap" }), exporter, dark);
  }

  tools() {
    const sign = label => h("button", { type: "button", "data-label": label, "aria-pressed": String(label > 0), onclick: () => { this.minus = label < 0; buttons.forEach(button => button.setAttribute("aria-pressed", String(Number(button.dataset.label) === label))); } }, label > 0 ? "● draw +" : "■ draw −");
    const buttons = [sign(1), sign(-1)];
    const zoom = (by, words, name) => h("button", { type: "button", "aria-label": name, onclick: () => this.zoom(this.show.plane.reach * by) }, words);
    this.toolbar = h("div", { class: "tools", role: "toolbar", "aria-label": "drawing" }, buttons, h("button", { type: "button", onclick: () => this.clear() }, "clear"), h("button", { type: "button", onclick: () => this.openTable() }, "table …"), h("span", { class: "gap" }), zoom(0.8, "+", "closer"), zoom(1.25, "−", "farther"));
    return this.toolbar;
  }

  whatIf() {
    const button = (words, how) => h("button", { type: "button", "data-change": how, onclick: () => this.ask(how) }, words);
    return h("div", { class: "tools", style: "margin-top:8px" }, h("span", {}, "What if …"), button("the data were symmetric", "symmetrize"), button("three hints were added", "hint"), button("labels were exchanged", "flip"));
  }

  tabsNode() {
    this.panels = {};
    this.tabButtons = {};
    const panels = TABS.map(([key, words]) => {
      this.tabButtons[key] = h("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": `panel-${key}`, onclick: () => this.openTab(key), onkeydown: event => this.tabKey(event, key) }, words);
      this.panels[key] = h("div", { class: key === "charts" ? "charts" : "" });
      return h("div", { role: "tabpanel", id: `panel-${key}`, "aria-labelledby": `tab-${key}` }, this.panels[key]);
    });
    this.panelNodes = Object.fromEntries(TABS.map(([key], k) => [key, panels[k]]));
    const list = h("div", { class: "tabs", role: "tablist", "aria-label": "what is shown" }, Object.values(this.tabButtons));
    this.openTab(this.tab);
    return [list, panels];
  }

  tabKey(event, key) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const keys = TABS.map(([name]) => name), next = keys[(keys.indexOf(key) + by + keys.length) % keys.length];
    this.openTab(next);
    this.tabButtons[next].focus();
    event.stopPropagation();
  }

  openTab(key) {
    this.tab = this.panels[key] ? key : "charts";
    for (const [name, button] of Object.entries(this.tabButtons)) {
      button.setAttribute("aria-selected", String(name === this.tab));
      button.tabIndex = name === this.tab ? 0 : -1;
      this.panelNodes[name].hidden = name !== this.tab;
    }
    if (this.board) this.draw();
    this.write();
  }

  dialogNode() {
    this.text = h("textarea", { "aria-label": "table: coordinates and the label in the last column", spellcheck: "false" });
    this.tableTrouble = h("p", { class: "problem", role: "alert" });
    this.dialog = h("dialog", { "aria-label": "paste a table" }, h("h3", {}, "Paste a table"), h("p", { class: "soft" }, "One point a line, the label, 1 or -1, in the last column. A CSV file can also be dropped on the plane."), this.text, this.tableTrouble,
      h("div", { class: "tools" }, h("button", { type: "button", class: "play", onclick: () => this.takeTable(this.text.value) }, "Take it"), h("button", { type: "button", onclick: () => this.dialog.close() }, "Cancel")));
    this.code = h("textarea", { "aria-label": "Python that makes this run again", readonly: true, spellcheck: "false" });
    const copy = h("button", { type: "button", class: "play", onclick: async () => { await navigator.clipboard.writeText(this.code.value); copy.textContent = "copied"; } }, "Copy");
    this.codeDialog = h("dialog", { "aria-label": "Python" }, h("h3", {}, "Python that makes this run again"), this.code, h("div", { class: "tools" }, copy, h("button", { type: "button", onclick: () => this.codeDialog.close() }, "Close")));
    const { stage } = this.show;
    stage.addEventListener("dragover", event => event.preventDefault());
    stage.addEventListener("drop", async event => {
      event.preventDefault();
      const file = event.dataTransfer.files[0], text = file ? await file.text() : event.dataTransfer.getData("text/plain");
      if (text) this.takeTable(text);
    });
    return [this.dialog, this.codeDialog];
  }

  // -- opening ----------------------------------------------------------------------------------------

  async openLink() {
    const found = this.linked ? readLink(location.hash, this.start.defaults) : {};
    if (found.shown) this.switchTo(found.shown);
    if (found.open) this.claims.open = new Set(found.open);
    if (found.tab) this.openTab(found.tab);
    if (found.lecture) await this.openLecture(found.lecture, found.where, Boolean(found.shown));
    else if (found.state) this.open(found.state, null, found.where ?? 0);
    else if (found.preset || !this.start.first) await this.openPreset(found.preset ?? this.start.presets[0].name, found.where ?? 0);
    else this.open(structuredClone(this.start.first), null, found.where ?? 0);
    if (found.reach) this.zoom(found.reach);
    if (found.broken) this.complain("the link is damaged; an example is shown instead.");
  }

  async openPreset(name, where = 0) {
    try {
      const state = await this.transport.preset(name);
      this.lecture.close();
      this.lectureStep = null;
      this.presetState = structuredClone(state);
      this.open(state, name, where);
    } catch (error) {
      this.complain(error.message);
    }
  }

  async openLecture(name, where = null, keep = false) {
    const found = this.lecture.find(name);
    if (!found) return this.complain(`there is no step ${name} of a lecture.`);
    this.lecture.show(name);
    this.lectureStep = name;
    this.presetState = structuredClone(found.step.state);
    if (found.step.show && !keep) this.switchTo(found.step.show);
    this.open(structuredClone(found.step.state), null, where ?? found.step.moment ?? 0);
  }

  open(state, preset, where) {
    this.preset = preset;
    this.chooser.value = preset ?? "";
    this.state = state;
    this.show.course.stop();
    this.show.course.where = where;
    this.fit();
    this.keep();
    this.refresh();
  }

  fit() {
    this.zoomed = null;
    if (this.state.points.length && this.flat) this.show.plane.fit(this.state.points);
    else if (!this.state.points.length) this.show.plane.reach = 3;
    this.refit = !this.flat;
  }

  /** Let data of this size stand on the circle. */
  zoom(reach) {
    this.zoomed = this.show.plane.reach = Number(reach.toPrecision(4));
    this.refit = false;
    this.show.draw();
    this.later();
  }

  switchTo(shown) {
    for (const [key] of OVERLAYS) this.show.plane.shown[key] = shown.includes(key);
    this.root.querySelectorAll("[data-overlay]").forEach(box => { box.checked = this.show.plane.shown[box.dataset.overlay]; });
    this.show.draw();
  }

  // -- changing ---------------------------------------------------------------------------------------

  get flat() { return !this.state.points.length || this.state.points[0].length === 2; }
  get editable() { return this.flat; }

  room() {
    if (this.state.points.length < MOST_POINTS) return true;
    this.complain(`the studio takes at most ${MOST_POINTS} points.`);
    return false;
  }

  /** Points are being moved. */
  moved() {
    if (this.state.network) this.state.network = null;
    this.refresh();
  }

  done(words) {
    fill(this.status, `${words}; ${this.state.points.length} points`);
    this.moved();
    this.keep();
  }

  turn(key, value) {
    this.state[key] = value;
    if (key === "scheme" && value === "two-sign" && this.state.width % 2) this.state.width += 1;
    if (key === "width" && this.state.scheme === "two-sign" && value % 2) this.state.width = value + 1;
    this.refresh();
  }

  clear() {
    Object.assign(this.state, { points: [], labels: [], name: "", network: null });
    this.fit();
    this.done("cleared");
  }

  async ask(how) {
    try {
      this.state = await this.transport.ask("change", { state: this.state, change: how });
      this.fit();
      this.done(how);
    } catch (error) {
      this.complain(error.message);
    }
  }

  openTable() {
    fill(this.tableTrouble);
    this.text.value = this.state.points.map((point, i) => [...point, this.state.labels[i]].join(", ")).join("\n");
    this.dialog.showModal();
  }

  async takeTable(text) {
    try {
      const found = await this.transport.ask("table", { text });
      Object.assign(this.state, { ...found, network: null, bias: null });
      this.dialog.close();
      this.fit();
      this.done("table taken");
    } catch (error) {
      fill(this.tableTrouble, error.message);
      if (!this.dialog.open) this.complain(error.message);
    }
  }

  /** Remember the state for undo. */
  keep() {
    const now = JSON.stringify(this.state);
    if (this.past.at(-1) === now) return;
    this.past.push(now);
    if (this.past.length > 200) this.past.shift();
    this.future = [];
    this.arm();
  }

  arm() {
    this.undoButton.disabled = this.past.length < 2;
    this.redoButton.disabled = !this.future.length;
  }

  undo() {
    if (this.past.length < 2) return;
    this.future.push(this.past.pop());
    this.restore(this.past.at(-1));
  }

  redo() {
    if (!this.future.length) return;
    this.past.push(this.future.pop());
    this.restore(this.past.at(-1));
  }

  restore(text) {
    this.state = JSON.parse(text);
    this.arm();
    this.fit();
    this.refresh();
  }

  // -- computing --------------------------------------------------------------------------------------

  /** Everything follows from the state: draw it, follow the flow, and after a pause ask theory. */
  refresh() {
    this.version += 1;
    this.touched ??= performance.now();
    this.knobs.show(this.state);
    this.hintNode.hidden = this.state.points.length > 0;
    this.toolbar.querySelectorAll("[data-label]").forEach(button => { button.disabled = !this.editable; });
    fill(this.trouble);
    clearTimeout(this.theoryTimer);
    const drawn = this.flat ? { points: this.state.points, labels: this.state.labels, bias: this.state.bias } : null;
    this.show.points = drawn;
    this.show.plane.faded = true;
    this.head.classList.add("stale");
    if (!this.state.points.length) return this.nothing();
    this.show.draw();
    this.live();
    this.theoryTimer = setTimeout(() => this.theory(), PAUSE);
    this.changed(structuredClone(this.state));
    this.later();
  }

  nothing() {
    this.show.plane.faded = false;
    this.show.set(null);
    this.board.set([]);
    this.claims.set([]);
    this.say(EMPTY_WORDS);
    this.write();
  }

  /** Follow the flow of the newest state; one question at a time. */
  async live() {
    if (this.asking) return;
    this.asking = true;
    for (let seen = -1; seen !== this.version && this.state.points.length;) {
      seen = this.version;
      const since = this.touched;
      this.touched = null;
      try {
        const found = await this.transport.ask("flow", { state: this.state, seconds: LIVE });
        if (!this.state.points.length) break;
        this.take(found, seen === this.version);
        if (since) this.latencies.push(performance.now() - since);
      } catch (error) {
        if (error.kind !== "Superseded" && seen === this.version) this.complain(error.message);
      }
    }
    this.asking = false;
  }

  async theory() {
    if (!this.state.points.length) return;
    if (this.asking) { this.theoryTimer = setTimeout(() => this.theory(), 60); return; }
    const seen = this.version;
    this.busy.hidden = false;
    try {
      const found = await this.transport.ask("theory", { state: this.state, seconds: LONG });
      if (seen !== this.version) return;
      this.found = found;
      this.take(found, true);
      this.say(found.words);
      this.tell(found);
    } catch (error) {
      if (error.kind !== "Superseded" && seen === this.version) this.complain(error.message);
    } finally {
      if (seen === this.version) this.busy.hidden = true;
    }
  }

  /** Show a run; it is no longer faded if it is that of the state. */
  take(found, newest) {
    if (found.movie) {
      if (this.refit) this.show.plane.fit(found.movie.points);
      this.show.plane.faded = !newest;
      if (newest && !this.flat) this.show.points = null;
      this.show.set(found.movie, false);
    }
    this.pending = found.charts;
    this.phases = found.phases;
    this.draw();
  }

  draw() {
    if (this.tab === "charts" && this.pending) {
      this.board.set(this.pending);
      this.pending = null;
    }
  }

  say(words) {
    this.head.classList.remove("stale");
    sayHeadline(this.head, words);
  }

  tell(found) {
    this.claims.set(found.claims);
    fill(this.panels.limit, found.parts.map(part => partNode(part, "h3")));
    fill(this.panels.outcome, h("p", {}, found.words.verdict), h("p", { class: "soft" }, found.words.setting), found.hints.map(text => h("p", { class: "hint" }, text)), cardsNode(found.words.cards), h("p", { class: "soft" }, found.words.papers));
  }

  light(samples) {
    this.show.plane.lit = new Set(samples);
    this.show.draw();
  }

  complain(words) {
    fill(this.trouble, words);
    this.busy.hidden = true;
    this.show.plane.faded = true;
    this.show.draw();
  }

  // -- link, files, keys ------------------------------------------------------------------------------

  later() {
    clearTimeout(this.linkTimer);
    this.linkTimer = setTimeout(() => this.write(), 200);
  }

  write() {
    if (!this.linked || !this.board || this.show.course.running) return;
    const shown = OVERLAYS.map(([key]) => key).filter(key => this.show.plane.shown[key]);
    this.written = writeLink({ preset: this.preset, presetState: this.presetState, lecture: this.lecture.step, state: this.state, defaults: this.start.defaults, shown, where: this.show.course.where, tab: this.tab, reach: this.zoomed, open: [...this.claims.open] });
    history.replaceState(null, "", this.written);
  }

  async export(kind) {
    const name = (this.state.name || "studio").replace(/[^\w-]+/g, "-");
    try {
      if (kind === "link") {
        this.write();
        await navigator.clipboard.writeText(location.href);
        fill(this.status, "the link was copied");
      } else if (kind === "png") this.show.canvas.toBlob(blob => save(`${name}.png`, blob));
      else if (kind === "svg") {
        const pen = new SvgPen(this.show.plane.size);
        this.show.plane.draw(pen, this.show.course, this.show.points);
        save(`${name}.svg`, new Blob([pen.text()], { type: "image/svg+xml" }));
      } else {
        const file = await this.transport.ask("export", { state: this.state, format: kind, seconds: LONG });
        if (kind === "python") return this.showCode(file.text);
        save(file.name, new Blob([file.text], { type: file.type }));
      }
    } catch (error) {
      this.complain(error.message);
    }
  }

  /** Show a program to copy; browsers do not like to save them. */
  showCode(text) {
    this.code.value = text;
    this.codeDialog.showModal();
    this.code.select();
  }

  darken() {
    this.page.dataset.chosen = "yes";
    this.page.dataset.theme = this.page.dataset.theme === "dark" ? "light" : "dark";
    this.show.draw();
  }

  key(event) {
    const { course } = this.show, ctrl = event.ctrlKey || event.metaKey, typing = event.target.matches?.("input:not([type=range]):not([type=checkbox]), textarea, select");
    if (typing || this.dialog.open || this.codeDialog.open || !this.root.isConnected) return;
    if (ctrl && event.key.toLowerCase() === "z") event.shiftKey ? this.redo() : this.undo();
    else if (ctrl && event.key.toLowerCase() === "y") this.redo();
    else if (ctrl || event.altKey) return;
    else if (event.key === " " && !event.target.matches?.("button, summary, [type=checkbox]")) course.toggle();
    else if (event.key === "ArrowRight" && !event.target.matches?.("[type=range]")) course.step(true);
    else if (event.key === "ArrowLeft" && !event.target.matches?.("[type=range]")) course.step(false);
    else if (event.key === "PageDown" && this.lecture.step) this.lecture.move(1);
    else if (event.key === "PageUp" && this.lecture.step) this.lecture.move(-1);
    else return;
    event.preventDefault();
  }
}

function save(name, blob) {
  const link = document.createElement("a");
  link.download = name;
  link.href = URL.createObjectURL(blob);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function keysNode() {
  const rows = [["Space", "play and pause"], ["← →", "to the event before, to the next"], ["PageUp PageDown", "steps of a lecture"], ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"], ["on the plane: + −", "add a point"], ["on the plane: . ,", "choose a point"], ["on the plane: arrows", "move it (with shift farther)"], ["on the plane: Backspace", "delete it"]];
  return h("table", {}, h("tbody", {}, rows.map(([keys, words]) => h("tr", {}, h("td", {}, h("kbd", {}, keys)), h("td", {}, words)))));
}
