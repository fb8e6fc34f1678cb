// The studio in a notebook.
import { overModel } from "./transport.js";
import { StudioApp } from "./studio.js";

export async function render({ model, el }) {
  el.classList.add("reluflow");
  const place = document.createElement("div");
  el.append(place);
  const app = new StudioApp(place, overModel(model), el, false);
  app.changed = state => {
    model.set("state", state);
    model.save_changes();
  };
  await app.begin();
}
