/* What every part of the script builds with. Text goes into the page by textContent alone. */
document.documentElement.classList.add("scripted");
const data = JSON.parse(document.getElementById("data").textContent);
const GROUPS = data.groups;
const isFramed = () => window.self !== window.top && window.origin === "null" && window.name !== "evaltrack-ui"; /* MLflow's frame opens nothing */
const $ = (id) => document.getElementById(id);

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) {
    if (child !== undefined && child !== null && child !== false && child !== "") made.append(child);
  }
  return made;
}
const el = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  filled(document.createElementNS($("drawing").namespaceURI, tag), attributes, children);
const foreign = (text, tag = "span", kind = "") => el(tag, { class: `foreign ${kind}`.trim(), dir: "auto" }, text);
const isWeb = (url) => { try { return /^https?:\/\//i.test(url) && /^https?:$/.test(new URL(url).protocol); } catch { return false; } };
const link = (url, text) =>
  url && isWeb(url) ? el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, text) : text;
const badge = (group) => el("span", { class: `badge ${GROUPS[group][1]}` }, GROUPS[group][0]);
const causeWords = (code) => { const words = data.causes[code] || code || ""; return words.charAt(0).toUpperCase() + words.slice(1); };

/* Marks what was searched for in the text of an element, which is all that it changes. */
function markHits(root, words) {
  if (!words.length) return root;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), texts = [];
  while (walker.nextNode() && texts.length < 400) texts.push(walker.currentNode);
  for (const node of texts) {
    const lower = node.data.toLowerCase();
    if (lower.length !== node.data.length) continue;
    const hits = [];
    for (const word of words) {
      for (let at = lower.indexOf(word); at >= 0 && hits.length < 200; at = lower.indexOf(word, at + word.length)) hits.push([at, at + word.length]);
    }
    if (!hits.length || node.parentElement.closest("button, summary, svg, .badge")) continue;
    hits.sort((a, b) => a[0] - b[0]);
    const pieces = [];
    let done = 0;
    for (const [from, to] of hits) {
      if (from < done) continue;
      pieces.push(node.data.slice(done, from), el("mark", {}, node.data.slice(from, to)));
      done = to;
    }
    node.replaceWith(...pieces, node.data.slice(done));
  }
  return root;
}
