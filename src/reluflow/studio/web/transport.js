// How the page asks: over HTTP, or through the model of a notebook.

/** An answer that is an error: what was wrong and what to do. */
export class Refusal extends Error {
  constructor(document) {
    super(document.error ?? "no answer");
    this.kind = document.kind ?? "Failed";
  }
}

async function readReply(reply) {
  const text = await reply.text();
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    document = { error: `the server answered ${reply.status}; reload the page.` };
  }
  if (!reply.ok || document.kind === "Superseded") throw new Refusal(document);
  return document;
}

/** Ask the server that the page came from. */
export function overHttp() {
  const session = crypto.randomUUID?.() ?? String(Math.random());
  const get = async path => readReply(await fetch(path).catch(() => lost()));
  const lost = () => { throw new Refusal({ error: "the studio does not answer; is reluflow studio still running?", kind: "Lost" }); };
  return {
    opening: () => get("/api/presets"),
    preset: name => get(`/api/preset?name=${encodeURIComponent(name)}`),
    ask: async (kind, asked) => readReply(await fetch(`/api/${kind}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...asked, session }),
    }).catch(() => lost())),
  };
}

/** Ask the kernel of a notebook. */
export function overModel(model) {
  const waiting = new Map();
  let number = 0;
  model.on("msg:custom", message => {
    const one = waiting.get(message.number);
    waiting.delete(message.number);
    if (one) message.error ? one.reject(new Refusal(message.error)) : one.resolve(message.document);
  });
  const ask = (kind, asked) => new Promise((resolve, reject) => {
    waiting.set(++number, { resolve, reject });
    model.send({ number, kind, asked });
  });
  return {
    opening: async () => model.get("start"),
    preset: name => ask("preset", { name }),
    ask: (kind, asked) => ask(kind, { seconds: 10, ...asked }),
  };
}
