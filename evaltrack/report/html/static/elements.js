/* What every part of the script builds with. Text goes into the page by textContent alone. */
document.documentElement.classList.add("scripted");
const data = JSON.parse(document.getElementById("data").textContent);
const GROUPS = data.groups;
const isFramed = () => window.self !== window.top && window.origin === "null" && window.name !== "evaltrack-ui"; /* MLflow's frame opens nothing */
const $ = (id) => document.getElementById(id);

const foreign = (text, tag = "span", kind = "") => make(tag, { class: `foreign ${kind}`.trim(), dir: "auto" }, text);
const isWeb = (url) => { try { return /^https?:\/\//i.test(url) && /^https?:$/.test(new URL(url).protocol); } catch { return false; } };
const link = (url, text) =>
  url && isWeb(url) ? make("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, text) : text;
const badge = (group) => make("span", { class: `badge ${GROUPS[group][1]}` }, GROUPS[group][0]);
const causeWords = (code) => { const words = data.causes[code] || code || ""; return words.charAt(0).toUpperCase() + words.slice(1); };

/* Marks what was searched for in the text of an element, which is all that it changes. */
function markHits(root, words) {
  const text = root.textContent.toLowerCase(), hits = [];
  if (text.length !== root.textContent.length) return root;
  for (const word of words) {
    for (let at = text.indexOf(word); at >= 0 && hits.length < 400; at = text.indexOf(word, at + word.length)) hits.push([at, at + word.length]);
  }
  return wrapRanges(root, hits.sort((a, b) => a[0] - b[0]), "mark", null);
}
