/* Which page is shown: `#/golden/EXPERIMENT/SET`, `#/question/EXPERIMENT/SET/ID`, `#/page/EXPERIMENT/SET/RUN/FILE`. */
import { clean, link, make } from "./dom.js";
import { golden } from "./golden.js";
import { artifact } from "./mlflow.js";
import { overview } from "./overview.js";
import { question } from "./question.js";

const REPORTS = { "comparison.html": "Comparison", "report.html": "Report", "leaderboard.html": "Sweep" };
const main = document.getElementById("main"), status = document.getElementById("status");
let shown = 0;

/* A report as its run holds it: in a sandbox, where its scripts reach nothing of this page. */
async function report(_experiment, _set, run, name) {
  if (!Object.hasOwn(REPORTS, name)) throw new Error("There is no such page.");
  const text = await artifact(run, name);
  const sandbox = "allow-scripts allow-popups allow-popups-to-escape-sandbox allow-downloads";
  const frame = make("iframe", { class: "report", name: "evaltrack-ui", title: REPORTS[name], sandbox, src: "frame.html" });
  window.addEventListener("message", function send(event) {
    if (event.source !== frame.contentWindow) return;
    window.removeEventListener("message", send);
    frame.contentWindow.postMessage(text, "*");
  });
  return { title: REPORTS[name], body: [frame] };
}

const decoded = (part) => { try { return decodeURIComponent(part); } catch { return part; } };
const PAGES = { "": overview, golden, question, page: report };

async function show() {
  const turn = ++shown;
  const [name, ...parts] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  const [experiment, set] = parts;
  main.setAttribute("aria-busy", "true");
  status.textContent = "Reading…";
  let made, problem = "";
  try {
    if (!Object.hasOwn(PAGES, name)) throw new Error("There is no such page.");
    made = await PAGES[name](...parts);
  } catch (error) {
    problem = clean(error.message, 1000);
    made = { title: "", body: [make("p", {}, make("a", { href: "#/" }, "All golden sets"))] };
  }
  if (turn !== shown) return;
  const crumbs = [name === "" ? "Golden sets" : link([], "Golden sets")];
  if (set) crumbs.push(name === "golden" ? make("span", { class: "foreign" }, clean(set)) : link(["golden", experiment, set], clean(set)));
  if (made.title && name && name !== "golden") crumbs.push(clean(made.title));
  document.getElementById("crumbs").replaceChildren(...crumbs.map((each) => make("li", {}, each)));
  document.title = `${[made.title || set, "evaltrack"].filter(Boolean).map((each) => clean(each, 80)).join(" · ")}`;
  document.body.classList.toggle("framed", name === "page");
  status.className = `status ${problem ? "bad-text" : ""}`;
  status.textContent = problem || made.said || "";
  main.replaceChildren(...made.body);
  main.removeAttribute("aria-busy");
}

window.addEventListener("hashchange", show);
window.addEventListener("evaltrack-changed", show);
show();
