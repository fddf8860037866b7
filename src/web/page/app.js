// The page: asks the API every two seconds and draws what it says. Nothing is computed here but
// lengths of bars. All text goes in through textContent; nothing is ever parsed as markup.
"use strict";

const EVERY_MS = 2000;      // between the end of one round and the start of the next
const PATIENCE_MS = 4000;   // for one answer
const STALE_MS = 7000;      // three rounds without news
const MARKS = 8;           // changes that are shown
const REQUESTS = 60;        // rows of the lower table
const SVG = "http://www.w3.org/2000/svg";

const PHASES = [
  ["slot", "slot wait"],
  ["lag", "own lag"],
  ["connect", "connect"],
  ["headers", "sent → headers"],
  ["first", "headers → first token"],
  ["decode", "first → last token"],
  ["rest", "until it failed"],
];

let lastNews = null;
let trouble = null;
let startOfDaemon = null;

const at = (id) => document.getElementById(id);

function node(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const known = (value) => typeof value === "number" && Number.isFinite(value);

// Milliseconds with three significant digits: 0.042, 3.10, 41.2, 512, 12 034.
function ms(value) {
  if (value >= 1000) return grouped(Math.round(value));
  if (value >= 100) return value.toFixed(0);
  if (value >= 10) return value.toFixed(1);
  if (value >= 1) return value.toFixed(2);
  return value === 0 ? "0" : value.toFixed(3);
}

const grouped = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
const plain = (value) => (Number.isInteger(value) ? grouped(value) : value.toFixed(1));
const percent = (share) => (share === 0 ? "0 %" : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`);

function span(seconds) {
  const total = Math.max(0, Math.floor(seconds));
  const [d, h, m, s] = [Math.floor(total / 86400), Math.floor(total / 3600) % 24, Math.floor(total / 60) % 60, total % 60];
  if (d) return `${d} d ${h} h`;
  if (h) return `${h} h ${m} min`;
  return m ? `${m} min ${s} s` : `${s} s`;
}

const age = (value) => (value < 10000 ? `${(value / 1000).toFixed(1)} s ago` : `${span(value / 1000)} ago`);

function dash(title) {
  const made = node("span", "unknown", "–");
  if (title) made.title = title;
  return made;
}

const cell = (content, className) => node("td", className, content);
const msCell = (value, why) => cell(known(value) ? ms(value) : dash(why));

// ---- servers ----------------------------------------------------------------------------------

function fact(name, value, ...more) {
  return node("div", "fact", node("span", "", name), node("b", "", value), ...more);
}

function gauge(share) {
  const width = Math.max(0, Math.min(1, share)) * 100;
  return svg("svg", { class: "gauge", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { width, height: 4 }));
}

function serverCard(target) {
  const card = node("li", "", node("div", "who", node("b", "", target.name),
    node("span", "", `${target.model || "model not known yet"} · ${target.endpoint}`)));
  card.append(...target.states.map((one) => stateFact(one, target.states.length > 1)));
  if (known(target.in_flight)) card.append(fact("ours in flight", plain(target.in_flight)));
  card.append(...serverFacts(target.server), ...gpuFacts(target.gpu));
  return card;
}

const TROUBLED = ["down", "gone"];

function stateFact(one, many) {
  const name = many ? `state of ${one.endpoint}` : "state";
  if (one.state === null) return fact(name, dash("no request has ended yet"));
  const made = fact(name, one.state);
  if (TROUBLED.includes(one.state)) made.lastChild.className = "trouble";
  if (known(one.for_s)) made.title = `for ${span(one.for_s)}`;
  return made;
}

function serverFacts(state) {
  if (!state) return [node("span", "dim", "no server metrics read")];
  return [
    fact("running", known(state.running) ? plain(state.running) : dash("not on its page")),
    fact("waiting", known(state.waiting) ? plain(state.waiting) : dash("not on its page")),
    known(state.kv_usage)
      ? fact("KV cache", percent(state.kv_usage), gauge(state.kv_usage))
      : fact("KV cache", dash("not on its page")),
    fact("read", known(state.age_ms) ? age(state.age_ms) : dash())];
}

// All GPUs of a target as one; each of them is in the title.
function gpuFacts(gpus) {
  if (!gpus) return [];
  const many = gpus.gpus > 1;
  const facts = [known(gpus.utilization)
    ? fact(many ? `${gpus.gpus} GPUs` : "GPU", percent(gpus.utilization), gauge(gpus.utilization))
    : fact(many ? `${gpus.gpus} GPUs` : "GPU", dash("no utilisation told"))];
  if (known(gpus.memory_max)) facts.push(fact("GPU memory", percent(gpus.memory_max), gauge(gpus.memory_max)));
  if (known(gpus.sm_clock_hz)) facts.push(fact("GPU clock", `${plain(Math.round(gpus.sm_clock_hz / 1e6))} MHz`));
  if (known(gpus.power_w)) facts.push(fact("GPU power", `${plain(Math.round(gpus.power_w))} W`));
  const cost = gpus.energy && gpus.energy.per_output_token_j;
  if (known(cost)) {
    const made = fact("energy", `${cost < 10 ? cost.toPrecision(2) : plain(Math.round(cost))} J a token`);
    made.title = "all GPUs of the target over all output tokens of its server, in the last minute";
    facts.push(made);
  }
  if (gpus.throttled) facts.push(fact("GPU clocks", "lowered"));
  if (gpus.xid) facts.push(fact("GPU error", `XID ${gpus.xid}`));
  facts.push(fact("GPUs read", age(gpus.age_ms)));
  facts[0].title = gpus.each.map((one) => `${one.gpu}: ${known(one.fields.utilization)
    ? percent(one.fields.utilization) : "–"} ${one.model}`).join("\n");
  return facts;
}

// Running / waiting / KV use, as one cell.
function serverCell(state, why) {
  if (!state) return cell(dash(why));
  const parts = [known(state.running) ? plain(state.running) : "–", known(state.waiting) ? plain(state.waiting) : "–",
    known(state.kv_usage) ? percent(state.kv_usage) : "–"];
  const made = cell(parts.join(" / "), "dim");
  if (known(state.age_ms)) made.title = `read ${age(state.age_ms)}`;
  return made;
}

function drawStatus(status) {
  const facts = [["version", status.version], ["command", status.command], ["seed", status.seed],
    ["up", span(status.uptime_s)]];
  if (!status.ready) facts.push(["load", "not running"]);
  for (const [name, value] of Object.entries(status.counts)) {
    if (known(value)) facts.push([name.replaceAll("_", " "), grouped(value)]);
  }
  at("facts").replaceChildren(...facts.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => node("div", "", node("dt", "", name), node("dd", "", String(value)))));
  at("servers").replaceChildren(...status.targets.map(serverCard));
  if (startOfDaemon !== null && startOfDaemon !== status.started_unix_ms) location.reload();
  startOfDaemon = status.started_unix_ms;
}

// ---- streams ----------------------------------------------------------------------------------

function quantile(metric, name) {
  if (metric && known(metric[name])) return cell(ms(metric[name]), name === "p95_ms" ? "key" : "");
  const n = metric ? metric.n : 0;
  const made = dash(`too few values: ${n}`);
  made.append(node("small", "", ` ${grouped(n)}`));
  return cell(made);
}

function spanCells(part) {
  const errors = known(part.error_share)
    ? cell(percent(part.error_share), part.error_share > 0 ? "trouble" : "dim")
    : cell(dash("no request ended"));
  if (known(part.errors)) errors.title = `${part.errors} of ${part.requests}`;
  return [cell(grouped(part.requests), "edge"), quantile(part.ttft, "p50_ms"), quantile(part.ttft, "p95_ms"),
    quantile(part.itl, "p50_ms"), quantile(part.itl, "p95_ms"), errors];
}

// How well a stream's bytes could be timed, and what was odd about them, in a few words.
function wireFacts(wire) {
  const counts = (of) => Object.entries(of).map(([name, count]) => `${name.replaceAll("_", " ")} ${grouped(count)}`);
  return [counts(wire.clocks).length ? `clock: ${counts(wire.clocks).join(", ")}` : null,
    wire.exact_chunks || wire.merged_chunks
      ? `chunks: ${grouped(wire.exact_chunks)} exact, ${grouped(wire.merged_chunks)} merged` : null,
    ...counts(wire.notes)].filter((part) => part !== null);
}

function streamRow(stream, streams) {
  const alone = streams.filter((other) => other.probe === stream.probe && other.target === stream.target).length === 1;
  const name = node("th", "", node("b", "", stream.probe), node("span", "", ` → ${stream.target}`),
    alone ? null : node("span", "dim", ` ${stream.endpoint}`),
    stream.api === "chat" ? null : node("span", "tag", stream.api.replaceAll("_", " ")),
    node("span", "tag", stream.cache), node("span", "tag", stream.connection.replaceAll("_", " ")),
    stream.closed_loop ? node("span", "tag", "closed loop") : null);
  name.scope = "row";
  name.title = [stream.endpoint, stream.model || "model not known yet", stream.api, ...wireFacts(stream.wire)].join(" · ");
  const server = serverCell(stream.server, "no fresh reading of its metrics page");
  server.classList.add("edge");
  return node("tr", "", name, ...spanCells(stream.last_minute), ...spanCells(stream.since_start), server);
}

// What is wanted, in words: "TTFT ≤ 500 ms for 95 %", "answered: 99 %", "all of it".
function wanted(objective) {
  const share = known(objective.objective) ? `${+(objective.objective * 100).toFixed(3)} %` : null;
  if (objective.slo === "all") return "all of these at once";
  if (objective.slo === "success") return `answered: ${share}`;
  const name = ["ttft", "ttfo", "itl"].includes(objective.slo)
    ? objective.slo.toUpperCase() : objective.slo.replaceAll("_", " ").replace("ttft", "TTFT");
  return `${name} ≤ ${ms(objective.limit_ms)} ms${share ? ` for ${share}` : ""}`;
}

function heldCells(held) {
  const burn = known(held.burn_rate)
    ? cell(held.burn_rate.toFixed(held.burn_rate < 10 ? 2 : 0), held.burn_rate > 1 ? "trouble" : "dim")
    : cell(dash(held.requests ? "it has no objective of its own" : "no request that counts"));
  return [cell(`${grouped(held.good)} of ${grouped(held.requests)}`, "edge"),
    cell(known(held.good_share) ? `${(held.good_share * 100).toFixed(2)} %` : dash("no request that counts")), burn];
}

function drawObjectives(answer) {
  const rows = answer.streams.flatMap((stream) => stream.slo.map((objective, index) => {
    const name = node("th", "", index ? null : node("b", "", stream.probe),
      index ? null : node("span", "", ` → ${stream.target}`), index ? null : node("span", "tag", stream.cache));
    name.scope = "row";
    name.title = `${stream.probe} → ${stream.target} · ${stream.endpoint} · ${stream.cache}`;
    return node("tr", "", name, cell(wanted(objective), "text"), ...heldCells(objective.last_hour),
      ...heldCells(objective.since_start));
  }));
  at("objectives-section").hidden = rows.length === 0;
  at("objectives").tBodies[0].replaceChildren(...rows);
}

function empty(columns, text) {
  const made = cell(text, "text dim");
  made.colSpan = columns;
  return node("tr", "", made);
}

// ---- findings ---------------------------------------------------------------------------------

const UNITS = {
  s: (value) => `${ms(value * 1000)} ms`,
  share: percent,
  "1/s": (value) => `${plain(value)}/s`,
  Hz: (value) => `${ms(value / 1e6)} MHz`,
};

function evidence(number) {
  const shown = UNITS[number.unit] || plain;
  const before = known(number.before) ? ` (before ${shown(number.before)})` : "";
  return node("li", "", `${number.what}: `, node("b", "", shown(number.now)), before);
}

function finding(one) {
  const symptoms = one.symptoms.map((name) => name.replaceAll("_", " ")).join(", ");
  const span = `over ${plain(one.span_s)} s${one.has_baseline ? "" : ", nothing to compare with yet"}`;
  const made = node("li", "", node("div", "who", node("b", "", `${one.target} / ${one.probe}`),
    node("span", "", symptoms ? `${symptoms}, ${span}` : span)));
  if (one.causes.length === 0) made.append(node("p", "dim", "Nothing that is known says why."));
  for (const cause of one.causes) {
    made.append(node("p", "", node("b", "", cause.cause.replaceAll("_", " ")), ` (${cause.confidence}) — ${cause.advice}`),
      node("ul", "evidence", ...cause.evidence.map(evidence)));
  }
  return made;
}

function drawFindings(answer) {
  const rows = answer.findings.filter((one) => one.symptoms.length > 0 || one.causes.length > 0);
  at("findings-section").hidden = rows.length === 0;
  at("findings").replaceChildren(...rows.map(finding));
}

function mark(one) {
  const made = node("li", "", node("div", "who", node("b", "", one.kind), node("span", "",
    `${one.target || "all targets"}, ${clock(one.at_unix_ms * 1e6)}`)), node("span", "", one.text));
  made.title = new Date(one.at_unix_ms).toISOString();
  return made;
}

function drawMarks(answer) {
  at("marks-section").hidden = answer.marks.length === 0;
  at("marks").replaceChildren(...answer.marks.slice(0, MARKS).map(mark));
}

function drawStreams(answer) {
  const rows = answer.streams.map((stream) => streamRow(stream, answer.streams));
  at("streams").tBodies[0].replaceChildren(...(rows.length ? rows : [empty(14, "no stream is configured")]));
}

// ---- requests ---------------------------------------------------------------------------------

const sum = (...values) => (values.some(known) ? values.filter(known).reduce((a, b) => a + b, 0) : null);

// Pieces of the bar as [phase, from, to], in milliseconds from the moment the request was due.
function pieces(request) {
  const { waits_ms: waits, phases_ms: phases, times_ms: times } = request;
  const slot = waits.slot || 0;
  const start = slot + (waits.schedule_lag || 0);
  const found = [["slot", 0, slot], ["lag", slot, start]];
  const connected = start + (sum(phases.dns, phases.connect, phases.tls) || 0);
  found.push(["connect", start, connected]);
  let from = connected;
  for (const [phase, mark] of [["headers", times.headers], ["first", times.ttft], ["decode", times.last_token]]) {
    if (!known(mark)) continue;
    found.push([phase, from, start + mark]);
    from = start + mark;
  }
  if (request.outcome !== "ok" && known(times.end)) found.push(["rest", from, start + times.end]);
  return found.filter(([, a, b]) => b > a);
}

const until = (list) => list.reduce((most, [, , to]) => Math.max(most, to), 0);

function bar(list, scale) {
  const label = list.map(([phase, from, to]) => `${PHASES.find(([key]) => key === phase)[1]} ${ms(to - from)} ms`).join(", ");
  const made = svg("svg", { role: "img", "aria-label": label || "not sent", viewBox: "0 0 1000 13", preserveAspectRatio: "none" },
    svg("title", {}));
  made.firstChild.textContent = label || "not sent";
  for (const [phase, from, to] of list) {
    const x = (from / scale) * 1000;
    const width = Math.max(((to - from) / scale) * 1000, 1.5);
    made.append(svg("rect", { class: `phase ${phase}`, x, y: phase === "decode" ? 3.5 : 1, width, height: phase === "decode" ? 6 : 11 }));
  }
  return made;
}

function outcomeCell(request) {
  const kind = request.outcome === "ok" ? "ok" : ["refused", "cancelled"].includes(request.outcome) ? "held" : "failed";
  const more = [request.http_status && request.http_status !== 200 ? request.http_status : null, request.refused_reason,
    request.error ? request.error.message || request.error.kind : null,
    ...request.notes.map((note) => note.replaceAll("_", " "))].filter((part) => part !== null && part !== undefined);
  const made = node("td", `text outcome ${kind}`, request.outcome, more.length ? node("small", "", ` ${more.join(" · ")}`) : null);
  if (more.length) made.title = more.join(" · ");
  return made;
}

function clock(unixNs) {
  const time = new Date(unixNs / 1e6);
  const two = (value) => String(value).padStart(2, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

function requestRow(request, list, scale) {
  const tokens = request.tokens;
  const due = node("th", "", clock(request.intended_unix_ns));
  due.scope = "row";
  due.title = `request ${request.sequence}`;
  const trace = node("code", "", request.trace_id.slice(0, 8));
  trace.title = `${request.trace_id} · clock ${request.clock}, ${request.merged_chunks} of ${request.chunks ?? "–"} chunks merged`;
  const lag = msCell(request.waits_ms.schedule_lag);
  if (request.lagged) {
    lag.className = "trouble";
    lag.title = "we were late ourselves: this request feeds no verdict";
  }
  const failed = !["ok", "refused", "cancelled"].includes(request.outcome);
  return node("tr", failed ? "failed" : "", due,
    node("td", "text", request.probe, node("span", "dim", ` → ${request.target}`)),
    outcomeCell(request), cell(bar(list, scale), "bar"),
    msCell(request.waits_ms.slot), lag,
    msCell(sum(request.phases_ms.dns, request.phases_ms.connect, request.phases_ms.tls), request.reused ? "reused connection" : ""),
    msCell(request.times_ms.ttft), msCell(request.itl_ms), msCell(request.response_time_ms),
    cell(known(tokens.input) || known(tokens.output) ? `${tokens.input ?? "–"} → ${tokens.output ?? "–"}` : dash(), "dim"),
    serverCell(request.server.intended, "no fresh reading of its metrics page then"), cell(trace, "text"));
}

function drawRequests(answer) {
  const lists = answer.requests.map(pieces);
  const scale = Math.max(...lists.map(until), 1);
  const rows = answer.requests.map((request, index) => requestRow(request, lists[index], scale));
  at("scale").textContent = rows.length ? `0 … ${ms(scale)} ms` : "";
  at("requests").tBodies[0].replaceChildren(...(rows.length ? rows : [empty(13, "no request has ended yet")]));
}

function drawLegend() {
  const hatch = svg("svg", { class: "off", "aria-hidden": "true" }, svg("defs", {},
    svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
      svg("rect", { class: "hatch-ground", width: 6, height: 6 }), svg("path", { class: "hatch-line", d: "M-1 7 7 -1" }))));
  document.body.append(hatch);
  at("legend").replaceChildren(...PHASES.map(([phase, text]) => node("li", "",
    svg("svg", { viewBox: "0 0 18 10", "aria-hidden": "true" },
      svg("rect", { class: `phase ${phase}`, y: phase === "decode" ? 2 : 0, width: 18, height: phase === "decode" ? 6 : 10 })), text)));
}

// ---- the round --------------------------------------------------------------------------------

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
  return answer.json();
}

function drawFreshness() {
  const since = lastNews === null ? null : performance.now() - lastNews;
  const old = since !== null && since > STALE_MS;
  document.body.classList.toggle("old", old);
  let [state, text] = ["live", "live"];
  if (trouble) {
    state = "gone";
    text = since === null ? trouble : `${trouble}; this is ${span(since / 1000)} old`;
  } else if (since === null) {
    [state, text] = ["waiting", "waiting for the first data"];
  } else if (old) {
    [state, text] = ["stale", `stale: ${span(since / 1000)} old`];
  }
  const place = at("freshness");
  if (place.textContent !== text) place.textContent = text;
  place.className = `freshness ${state}`;
}

async function round() {
  try {
    const [status, streams, findings, marks, requests] = await Promise.all([ask("/api/v1/status"),
      ask("/api/v1/streams"), ask("/api/v1/findings"), ask("/api/v1/marks"), ask(`/api/v1/requests?limit=${REQUESTS}`)]);
    drawStatus(status);
    drawStreams(streams);
    drawFindings(findings);
    drawMarks(marks);
    drawObjectives(streams);
    drawRequests(requests);
    lastNews = performance.now();
    trouble = null;
  } catch (error) {
    // A fetch that finds no server fails as TypeError.
    const why = { TimeoutError: "the daemon does not answer", TypeError: "the daemon is gone" };
    trouble = why[error.name] || `the daemon has a problem: ${error.message}`;
  }
  drawFreshness();
  setTimeout(round, EVERY_MS);
}

drawLegend();
setInterval(drawFreshness, 1000);
round();
