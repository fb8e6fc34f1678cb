// The studio as a page of its own.
import { overHttp } from "./transport.js";
import { StudioApp } from "./studio.js";

window.studio = new StudioApp(document.getElementById("studio"), overHttp(), document.body);
window.studio.begin();
