/* A golden set: its runs, how its metrics went, and its questions over the runs. */
import { address, badge, cell, clean, count, date, draw, figure, foreign, isNumber, lead, link, make, number, table } from "./dom.js";
import { apart, artifact, differences, experiments, ofGolden, parsed, promote, search, standing } from "./mlflow.js";

const RUNS = 100, COLUMNS = 20, ROWS = 200, NAMED = 300;
const METRICS = {
  pass_rate: "Pass rate", recall_at_k: "Recall", mrr: "MRR", judge_score: "Judge's score", reasoning_score: "Reasoning score", combined_score: "Combined score",
};
const SIGNS = { pass: "·", fail: "✕", error: "!", "not measured": "?" };

let said = "";

/* The runs of a golden set, and those `past` up to the run `last`, else up to the newest. */
export async function history(experimentId, set, last) {
  const experiment = (await experiments()).find((each) => each.id === experimentId);
  if (!experiment) throw new Error("MLflow shows you no such experiment: it is deleted, or you have no permission to see it.");
  const found = await search([experimentId], ofGolden(set), RUNS);
  const place = last ? found.runs.findIndex((run) => run.id === last) : 0;
  if (place < 0) throw new Error(`This run is not among the newest ${RUNS} runs of the golden set.`);
  const past = found.runs.slice(place);
  return { experiment, baseline: experiment.baselines.get(set), past, ...found };
}

export async function golden(experimentId, set, last) {
  const { experiment, baseline, runs, past, more } = await history(experimentId, set, last);
  const told = said;
  said = "";
  const title = make("h1", { class: "foreign" }, clean(set));
  if (!runs.length) return { title: set, body: [title, make("p", {}, "MLflow shows you no run of this golden set.")] };
  const card = (heading, ...parts) => make("section", { class: "card" }, make("h2", {}, heading), parts);
  const matrix = card("Questions over the runs", make("p", { class: "dim" }, "Reading the outcomes…"));
  questions(matrix, set, past);
  const inMlflow = make("a", { href: `../#/experiments/${encodeURIComponent(experiment.id)}` }, foreign(experiment.name));
  const rest = more && make("p", { class: "dim" }, `The newest ${RUNS} runs; MLflow has more.`);
  return {
    title: set, said: told,
    body: [
      title, make("p", { class: "dim" }, "Experiment ", inMlflow, " · ", ...baselineWords(baseline, runs)),
      past.length < runs.length && make("p", {}, "The history up to ", foreign(past[0].name), ". ", link(["golden", experimentId, set], "All of it")),
      card("Runs", table("Runs", HEADS, runRows(runs, baseline, set)), rest), card("Trends", trends(past, set)), matrix,
    ].filter(Boolean),
  };
}

function baselineWords(baseline, runs) {
  if (!baseline) return ["no baseline is set"];
  const run = runs.find((each) => each.id === baseline.run_id);
  const reason = baseline.reason ? foreign(` (${clean(baseline.reason, 500)})`) : "";
  return ["Baseline: ", foreign(run?.name || baseline.run_id), `, set ${clean(String(baseline.at).slice(0, 10))} by `, foreign(baseline.by, 60), reason];
}

const HEADS = ["Verdict", "Run", "Started (UTC), commit", { words: "Pass rate", kind: "num" }, "What differs from the run before", ""];

/* Newest first; the runs of a sweep are one line, which unfolds. */
function runRows(runs, baseline, set) {
  const rows = [], sweeps = new Map();
  const single = runs.filter((run) => !run.inSweep);
  for (const run of runs) {
    if (!run.inSweep) rows.push(() => [runRow(run, single[single.indexOf(run) + 1], baseline, set)]);
    else if (sweeps.has(run.parent)) sweeps.get(run.parent).push(run);
    else {
      sweeps.set(run.parent, [run]);
      rows.push(() => sweepRows(sweeps.get(run.parent), baseline, set));
    }
  }
  return rows.flatMap((made) => made());
}

function sweepRows(runs, baseline, set) {
  const inner = runs.map((run, place) => runRow(run, runs[place + 1], baseline, set));
  for (const row of inner) row.hidden = true;
  const unfold = (event) => {
    for (const row of inner) row.hidden = !row.hidden;
    event.target.setAttribute("aria-expanded", String(!inner[0].hidden));
  };
  const button = make("button", { type: "button", "aria-expanded": "false", click: unfold }, `${count(runs.length, "run")} of a sweep`);
  const best = Math.max(...runs.map((run) => run.metrics.pass_rate).filter(isNumber));
  return [make("tr", {}, cell(badge("sweep", "muted")), lead(button), cell(date(runs[0].started)), figure(`best ${number("pass_rate", best)}`), cell(), cell()), ...inner];
}

function runRow(run, before, baseline, set) {
  const [words, tone] = standing(run, baseline), ended = run.status !== "RUNNING" && run.status !== "SCHEDULED";
  const state = run.status === "FINISHED" ? badge(words, tone) : badge(run.status.toLowerCase(), "warn");
  const page = (file, label) => link(["page", run.experiment, set, run.id, file], label);
  const whole = run.status === "FINISHED" && !run.metrics.num_errors && baseline?.run_id !== run.id;
  const acts = [
    run.compared.verdict && page("comparison.html", "Comparison"),
    make("a", { href: `../#/experiments/${encodeURIComponent(run.experiment)}/runs/${encodeURIComponent(run.id)}` }, "MLflow"),
    whole && make("button", { type: "button", title: clean(run.name, 80), click: () => askToPromote(run, baseline) }, "Set as baseline"),
  ];
  const errors = run.metrics.num_errors ? [" ", badge(count(run.metrics.num_errors, "error"), "bad")] : [];
  return make("tr", {},
    cell(state),
    lead(ended ? page("report.html", foreign(run.name)) : foreign(run.name), ...errors),
    cell(date(run.started), make("div", {}, make("code", { class: "dim" }, run.commit.slice(0, 7)), run.dirty && " with changes")),
    figure(number("pass_rate", run.metrics.pass_rate)),
    make("td", { class: "cause small" }, before && differenceWords(differences(run, before))),
    make("td", { class: "acts" }, acts));
}

function differenceWords(found) {
  if (!found.length) return make("span", { class: "dim" }, "nothing");
  const words = ({ name, was, now }) => (name === "golden set" ? "golden set edited" : `${clean(name, 40)} ${clean(was ?? "none", 40)} → ${clean(now ?? "none", 40)}`);
  const parts = found.slice(0, 4).map((each) => make("div", { class: "foreign" }, words(each)));
  return [...parts, found.length > 4 && make("div", { class: "dim" }, `and ${found.length - 4} more`)];
}

function askToPromote(run, baseline) {
  const reason = make("input", { maxlength: 500, autocomplete: "off" }), problem = make("p", { class: "bad-text", role: "alert" });
  const now = baseline ? `It replaces run ${clean(baseline.run_id, 8)}.` : "There is no baseline yet.";
  const close = () => dialog.close();
  async function act(event) {
    event.preventDefault();
    try {
      await promote(run, reason.value);
    } catch (error) { problem.textContent = error.message; return; }
    said = `${clean(run.name, 80)} is now the baseline of ${clean(run.golden, 80)}. The next runs are compared with it.`;
    close();
    window.dispatchEvent(new Event("evaltrack-changed"));
  }
  const dialog = make("dialog", { "aria-labelledby": "promote", close: () => dialog.remove() }, make("form", { submit: act },
    make("h2", { id: "promote" }, "Set as baseline of ", foreign(run.golden), "?"),
    make("p", {}, "The next runs are compared with ", foreign(run.name), `. ${now}`),
    make("p", { class: "controls" }, make("label", { class: "wide" }, "Reason (optional)", reason)), problem,
    make("p", { class: "controls" },
      make("button", { class: "primary" }, "Set as baseline"), make("button", { type: "button", click: close }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
}

const isHistory = (run) => run.status === "FINISHED" && !run.inSweep;

function trends(runs, set) {
  const newest = runs.find(isHistory), digest = newest?.signature.golden_digest;
  const alike = runs.filter((run) => isHistory(run) && !apart(run, newest).length && run.signature.golden_digest === digest).reverse();
  const plots = Object.keys(METRICS).map((name) => trend(name, alike.filter((run) => isNumber(run.metrics[name])), set)).filter(Boolean);
  const words = "Finished runs that measured the same questions in the same way, oldest first. A point leads to the report of its run.";
  if (!plots.length) return make("p", { class: "dim" }, "A trend needs two finished runs that measured the same questions in the same way.");
  return [make("p", { class: "dim small" }, words), make("div", { class: "trends" }, plots)];
}

function trend(name, runs, set) {
  if (runs.length < 2) return null;
  const values = runs.map((run) => run.metrics[name]), low = Math.min(...values), high = Math.max(...values), span = high - low || 1;
  const place = (at) => [64 + 300 * at / (runs.length - 1), 86 - 66 * (high > low ? (values[at] - low) / span : 0.5)].map((each) => each.toFixed(1));
  const words = (x, y, text, anchor) => draw("text", { x, y, "text-anchor": anchor }, text);
  const points = runs.map((run, at) => {
    const [x, y] = place(at), told = `${clean(run.name, 80)}, ${date(run.started)} UTC: ${number(name, values[at])}`;
    return draw("a", { href: address("page", run.experiment, set, run.id, "report.html"), "aria-label": told },
      draw("circle", { class: "reach", cx: x, cy: y, r: 12 }), draw("circle", { cx: x, cy: y, r: 4 }), draw("title", {}, told));
  });
  const days = [runs[0], runs.at(-1)].map((run) => date(run.started).slice(0, 10));
  const day = (run) => (days[0] === days[1] ? date(run.started) : date(run.started).slice(0, 10));
  const label = `${METRICS[name]} of ${count(runs.length, "run")}: from ${number(name, values[0])} to ${number(name, values.at(-1))}`;
  return make("figure", {}, make("figcaption", {}, METRICS[name]),
    draw("svg", { class: "trend", viewBox: "0 0 380 116", role: "group", "aria-label": label }, draw("path", { class: "axis", d: "M58 14V92H372" }),
      words(52, 24, number(name, high), "end"), high > low && words(52, 90, number(name, low), "end"),
      words(58, 110, day(runs[0]), "start"), words(372, 110, day(runs.at(-1)), "end"),
      draw("polyline", { points: runs.map((_run, at) => place(at).join(",")).join(" ") }), points));
}

/* The runs of the matrix, oldest first, each with the outcomes of its questions by id; and which are left out, and why. */
export async function outcomes(runs) {
  const newest = runs.find(isHistory), left = [], chosen = [];
  for (const run of runs) {
    const old = chosen.length === COLUMNS && `older than the newest ${COLUMNS}`;
    const why = run.status !== "FINISHED" ? "not finished" : run.inSweep ? "part of a sweep" : apart(run, newest).join(", ") || old;
    if (why) left.push({ run, why });
    else chosen.push(run);
  }
  const read = await Promise.all(chosen.map((run) => artifact(run.id, "outcomes.json").then(parsed, () => null)));
  const columns = [];
  chosen.forEach((run, at) => {
    const { id, digest, outcome, scores } = read[at] || {};
    if (![id, digest, outcome].every(Array.isArray)) { left.push({ run, why: "without outcomes.json" }); return; }
    columns.push({ run, scores: scores || {}, places: new Map(id.map((each, place) => [String(each), place])), digest, outcome });
  });
  return { columns: columns.reverse(), left };
}

/* The outcomes of a question over the runs; of one that was edited since, or was not asked, none. */
export function strip(columns, id) {
  const newest = columns.at(-1), digest = newest.digest[newest.places.get(id)];
  return columns.map(({ places, digest: digests, outcome }) => (places.has(id) && digests[places.get(id)] === digest ? outcome[places.get(id)] : ""));
}

function kindOf(cells, unchanged) {
  const places = [...cells.keys()].filter((at) => ["pass", "fail", "error"].includes(cells[at]));
  const known = places.map((at, place) => ({ at, passes: cells[at] === "pass", since: places[place - 1] }));
  const turns = known.filter((each, place) => place && each.passes !== known[place - 1].passes);
  const now = known.at(-1);
  if (!now) return "not measured";
  if (now.at === cells.length - 1 && !now.passes && turns.at(-1) === now) return "broke";
  if (turns.some((each) => unchanged.slice(each.since + 1, each.at + 1).every(Boolean))) return "flaky";
  if (now.passes) return "passes";
  return known.some((each) => each.passes) ? "fails" : "never";
}

const GROUPS = [
  ["broke", "Broke in the newest run", true], ["fails", "Still fail", true],
  ["flaky", "Flaky: changed without a change of commit, corpus or settings", true], ["never", "Fail in every run", false],
];

async function questions(section, set, runs) {
  const title = section.firstElementChild;
  try {
    const { columns, left } = await outcomes(runs);
    if (!columns.length) { section.replaceChildren(title, make("p", {}, "No finished run has outcomes to show."), leftOut(left, set)); return; }
    const unchanged = columns.map(({ run }, at) => at > 0 && !run.dirty && !differences(run, columns[at - 1].run).length);
    const groups = new Map();
    for (const id of columns.at(-1).places.keys()) {
      const cells = strip(columns, id), kind = kindOf(cells, unchanged);
      groups.set(kind, [...(groups.get(kind) || []), { id, cells }]);
    }
    const parts = GROUPS.filter(([kind]) => groups.has(kind)).map(([kind, words, open]) =>
      make("details", { open }, make("summary", {}, `${words} (${groups.get(kind).length})`), matrix(groups.get(kind), columns, set, words)));
    const of = (kind) => count(groups.get(kind)?.length || 0, "question");
    const rest = `${of("passes")} passed in the newest run, without being flaky${groups.has("not measured") ? `; ${of("not measured")} not measured` : ""}.`;
    const signs = Object.entries(SIGNS).map(([word, sign]) => `${sign} ${word}`).join("   ");
    const legend = make("p", { class: "dim small" }, `${count(columns.length, "run")}, oldest first. ${signs}`);
    section.replaceChildren(title, legend, ...parts, make("p", {}, rest), leftOut(left, set));
    await nameQuestions(section, columns.at(-1).run);
  } catch (error) {
    section.replaceChildren(title, make("p", { class: "bad-text" }, error.message));
  }
}

/* The words of the questions, where their file is small. */
async function nameQuestions(section, run) {
  if (!(run.metrics.num_questions <= NAMED)) return;
  const told = await artifact(run.id, "per_question.json").then(parsed, () => null);
  const [id, question] = ["id", "question"].map((name) => told?.columns?.indexOf(name));
  const words = new Map((told?.data || []).map((row) => [String(row[id]), row[question]]));
  for (const head of section.querySelectorAll("[data-id]")) {
    head.append(" ", make("span", { class: "dim foreign" }, clean(words.get(head.dataset.id), 70)));
  }
}

function matrix(lines, columns, set, label) {
  const { experiment } = columns[0].run;
  const head = ({ run }) => make("th", { scope: "col", title: `${clean(run.name, 80)}, ${date(run.started)} UTC` }, date(run.started).slice(5).replace(" ", "\n"));
  const mark = (outcome) => make("td", { class: `o-${outcome.replace(" ", "-")}`, title: outcome || "another question, or not asked" }, SIGNS[outcome]);
  const row = ({ id, cells }) => make("tr", {},
    make("th", { scope: "row", "data-id": id }, link(["question", experiment, set, id, columns.at(-1).run.id], foreign(id, 60))), cells.map(mark));
  const heads = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Question"), columns.map(head)));
  const whole = make("table", { class: "matrix" }, heads, make("tbody", {}, lines.slice(0, ROWS).map(row)));
  const rest = lines.length > ROWS && make("p", { class: "dim" }, `and ${lines.length - ROWS} more`);
  return [make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, whole), rest];
}

export function leftOut(left, set) {
  if (!left.length) return "";
  const reasons = new Map();
  for (const { why } of left) reasons.set(why, (reasons.get(why) || 0) + 1);
  const words = [...reasons].map(([why, number]) => `${number} ${why}`).join("; ");
  const item = ({ run, why }) => make("li", {}, foreign(run.name), ` (${date(run.started)} UTC): ${why} `,
    isHistory(run) && link(["golden", run.experiment, set, run.id], "history up to it"));
  return make("details", {}, make("summary", {}, `${count(left.length, "run")} left out: ${words}`), make("ul", {}, left.map(item)));
}
