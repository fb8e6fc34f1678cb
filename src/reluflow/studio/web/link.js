// The state of the studio in the address, so that a link restores everything.

const encoder = new TextEncoder(), decoder = new TextDecoder();

function pack(value) {
  let bytes = "";
  for (const byte of encoder.encode(JSON.stringify(value))) bytes += String.fromCharCode(byte);
  return btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function unpack(text) {
  const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return JSON.parse(decoder.decode(Uint8Array.from(bytes, sign => sign.charCodeAt(0))));
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** Write what is shown: a name if it is a preset as it was, else what differs from the defaults. */
export function writeLink({ preset, presetState, lecture, state, defaults, shown, where, tab, reach, open }) {
  const words = new URLSearchParams();
  if (lecture && same(state, presetState)) words.set("lecture", lecture);
  else if (preset && same(state, presetState)) words.set("preset", preset);
  else words.set("state", pack(Object.fromEntries(Object.entries(state).filter(([key, value]) => !same(value, defaults[key])))));
  words.set("show", shown.join("."));
  if (where > 0) words.set("at", where.toFixed(3));
  if (reach) words.set("reach", String(reach));
  if (open.length) words.set("open", open.join("~"));
  if (tab !== "charts") words.set("tab", tab);
  return `#${words}`;
}

/** Read a link; what cannot be read is left out. */
export function readLink(hash, defaults) {
  const words = new URLSearchParams(hash.replace(/^#/, "")), found = {};
  for (const key of ["preset", "lecture", "tab"]) if (words.get(key)) found[key] = words.get(key);
  if (words.has("show")) found.shown = words.get("show").split(".").filter(Boolean);
  const at = Number(words.get("at"));
  if (at >= 0 && at <= 1) found.where = at;
  if (words.has("open")) found.open = words.get("open").split("~");
  const reach = Number(words.get("reach"));
  if (reach > 0 && reach < 1e9) found.reach = reach;
  if (words.has("state")) {
    try {
      const known = Object.entries(unpack(words.get("state"))).filter(([key]) => key in defaults);
      found.state = { ...structuredClone(defaults), ...Object.fromEntries(known) };
    } catch {
      found.broken = true;
    }
  }
  return found;
}
