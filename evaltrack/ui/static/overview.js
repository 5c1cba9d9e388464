/* One line for each golden set, the worst first; sweeps and golden sets that were evaluated together, each in a line that unfolds. */
import { age, badge, cell, change, clean, count, draw, figure, foreign, isNumber, lead, link, make, number, table } from "./dom.js";
import { ANY, apart, experiments, newest, ofGolden, ofParent, PARENTS, search, standing } from "./mlflow.js";

const TREND = 6, TOGETHER = 20, BELOW = 200;

export async function overview() {
  const all = (await experiments()).filter((each) => each.sets.length);
  if (!all.length) return { title: "Golden sets", body: nothing() };
  const sets = all.flatMap((experiment) => experiment.sets.map((set) => ({ experiment, set })));
  const most = Math.min(1000, Math.max(100, TREND * sets.length));
  const { runs } = await newest(all.map((each) => each.id), ANY, most);
  const lines = await Promise.all(sets.map(({ experiment, set }) =>
    line(experiment, set, runs.filter((run) => run.experiment === experiment.id && run.golden === set))));
  lines.sort((one, other) => one.state[2] - other.state[2] || other.started - one.started);
  const parents = await search(all.map((each) => each.id), PARENTS, TOGETHER);
  const number = (words) => ({ words, kind: "num" }), several = all.length > 1;
  const heads = ["Verdict", "Golden set", number("Pass rate"), number("Broke · fixed"), "Cause", "Trend", "Newest run"];
  const card = (...parts) => make("section", { class: "card" }, parts);
  const body = [make("h1", {}, "Golden sets"), card(table("Golden sets", heads, lines.map((each) => row(each, several))))];
  if (parents.runs.length) body.push(make("h2", {}, "Sweeps and golden sets that were evaluated together"), card(parents.runs.map(together)));
  return { title: "Golden sets", body };
}

function nothing() {
  const words = "MLflow shows you no golden set: nothing was evaluated yet, or you have no permission to see it.";
  return [make("h1", {}, "Golden sets"), make("p", {}, words), make("p", {}, "Evaluate one: ", make("code", {}, "evaltrack run GOLDEN"))];
}

/* A golden set that has no run among the newest is asked for by itself. */
async function line(experiment, set, held) {
  const baseline = experiment.baselines.get(set);
  try {
    const { runs } = held.length ? { runs: held } : await newest([experiment.id], ofGolden(set), TREND);
    return { experiment, set, runs, state: standing(runs[0], baseline), started: runs[0]?.started || 0 };
  } catch (error) {
    return { experiment, set, runs: [], state: ["cannot be read", "warn", 1], started: 0, problem: error.message };
  }
}

function row({ experiment, set, runs, state, problem }, several) {
  const [run] = runs, [words, tone, place] = state, compared = run && (place < 2 || place === 4) ? run.compared : {};
  const page = isNumber(compared.broke) || compared.verdict ? link(["page", experiment.id, set, run.id, "comparison.html"], words) : words;
  const part = (value, kind) => make("span", { class: value ? kind : "dim" }, String(value));
  const both = isNumber(compared.broke) && isNumber(compared.fixed);
  const cause = problem || compared.cause || (words === "no baseline" && "choose a run and set it as the baseline");
  return make("tr", {},
    cell(badge(page, tone)),
    lead(link(["golden", experiment.id, set], foreign(set)), several && make("div", { class: "dim small foreign" }, experiment.name)),
    figure(number("pass_rate", run?.metrics.pass_rate), " ", change("pass_rate", compared.change)),
    figure(both ? [part(compared.broke, "bad-text"), " · ", part(compared.fixed, "good-text")] : "–"),
    make("td", { class: "cause" }, cause && make("span", { class: place === 3 ? "dim" : "foreign" }, clean(cause, 300))),
    cell(spark(runs)),
    cell(run && [age(run.started), " ", make("code", { class: "dim" }, run.commit.slice(0, 7))]));
}

function spark(runs) {
  const values = runs.filter((each) => !apart(each, runs[0]).length).map((each) => each.metrics.pass_rate).filter(isNumber).reverse();
  if (values.length < 2) return "";
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  const points = values.map((value, at) => [2 + 86 * at / (values.length - 1), 19 - 16 * (value - low) / span].map((each) => each.toFixed(1)).join(","));
  const label = `Pass rate of ${count(values.length, "run")}: from ${number("pass_rate", values[0])} to ${number("pass_rate", values.at(-1))}`;
  return draw("svg", { class: "spark", width: 90, height: 22, role: "img", "aria-label": label }, draw("polyline", { points: points.join(" ") }));
}

function together(parent) {
  const list = make("div", {}), isSweep = parent.kind === "sweep";
  async function fill(event) {
    if (!event.target.open || list.childElementCount) return;
    list.replaceChildren(make("p", { class: "dim" }, "Reading…"));
    try {
      const { runs } = await search([parent.experiment], ofParent(parent.id), BELOW);
      const heads = ["Run", "Golden set", { words: "Pass rate", kind: "num" }, "Started"];
      const board = isSweep && runs.length > 0 && make("p", {}, report(runs[0], parent.id, "leaderboard.html", "The sweep's leaderboard"));
      list.replaceChildren(board || "", table(`Runs of ${parent.name}`, heads, runs.map(below)));
    } catch (error) { list.replaceChildren(make("p", { class: "bad-text" }, error.message)); }
  }
  const words = [badge(isSweep ? "sweep" : "golden sets", "muted"), " ", foreign(parent.name), " ", age(parent.started)];
  return make("details", { toggle: fill }, make("summary", {}, words), list);
}

const report = (run, of, file, words) => link(["page", run.experiment, run.golden || "", of, file], words);
const below = (run) => make("tr", {},
  lead(report(run, run.id, "report.html", foreign(run.name))), cell(foreign(run.golden)), figure(number("pass_rate", run.metrics.pass_rate)),
  cell(run.status === "FINISHED" ? age(run.started) : badge(run.status.toLowerCase(), "warn")));
