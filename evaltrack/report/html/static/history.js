/* How a question went over the last runs, oldest first: a bar for each, low where it passed, tall where it failed. */
const STEP = 6;
const failures = (letters) => [...letters].filter((letter) => letter === "f" || letter === "e").length;

function strip(question) {
  const runs = data.strip_runs, paths = {};
  [...question.strip].forEach((letter, at) => {
    paths[letter] = `${paths[letter] || ""}M${at * STEP} ${letter === "p" ? "5h5v6h-5z" : letter === "f" || letter === "e" ? "1h5v14h-5z" : "7h5v2h-5z"}`;
  });
  const words = `${failures(question.strip)} of the last ${runs.length === 1 ? "run" : `${runs.length} runs`} failed or ended in an error`;
  const plot = svg("svg", { class: "strip", width: runs.length * STEP, height: 16, role: "img", "aria-label": words },
    ...Object.entries(paths).map(([letter, d]) => svg("path", { class: `run-${letter}`, d })));
  return [el("span", { class: "strip-box", "data-strip": question.strip }, plot), question.since && foreign(question.since, "div", "since")].filter(Boolean);
}

/* The run below the pointer is named. */
document.addEventListener("pointermove", (event) => {
  const box = event.target.closest && event.target.closest(".strip-box");
  if (!box) return;
  const at = Math.floor((event.clientX - box.getBoundingClientRect().left) / STEP), letter = box.dataset.strip[at];
  if (letter) box.title = `${data.strip_runs[at]}: ${data.letters[letter]}`;
});
