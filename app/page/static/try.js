// Sends a file to the API, once for each method, and shows the answers side by side.
"use strict";
(() => {
  const TYPES = { csv: "text/csv", parquet: "application/vnd.apache.parquet", arrow: "application/vnd.apache.arrow.stream" };
  const TRACED = "em";
  const form = document.getElementById("try");
  if (!form) return;
  const at = (id) => document.getElementById(id);
  const drop = at("drop"), file = at("file"), status = at("status"), results = at("results");
  let answers = [], asked = null;

  const percent = (share) => (share === null || share === undefined ? "–" : share > 0 && share < 1e-4 ? "< 0.01 %" : `${(100 * share).toFixed(share < 0.01 && share !== 0 ? 2 : 1)} %`);

  function element(name, text, more = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    return Object.assign(made, more);
  }

  function say(place, text, wrong = false) {
    place.replaceChildren(element("p", text, { className: wrong ? "problem" : "note" }));
  }

  function address(what, query) {
    const { root, model, version, predictions } = asked;
    const all = new URLSearchParams(query);
    if (predictions) all.set("predictions", predictions);
    return `${root}/v1/models/${encodeURIComponent(model)}/versions/${encodeURIComponent(version).replace("%40", "@")}/${what}?${all}`;
  }

  async function post(what, query, accept) {
    const answer = await fetch(address(what, query), {
      method: "POST", body: asked.body, headers: { "Content-Type": asked.type, Accept: accept },
    });
    if (answer.status === 401) throw new Error("the session has ended: sign in again");
    if (!answer.ok) {
      const told = await answer.json().catch(() => ({ detail: `the service answers ${answer.status}` }));
      throw new Error(told.detail);
    }
    return answer;
  }

  async function run() {
    const given = file.files[0];
    const ending = given.name.split(".").pop().toLowerCase();
    const methods = [...form.querySelectorAll("[name=method]:checked:not(:disabled)")].map((box) => box.value);
    if (!(ending in TYPES)) return say(status, "Send a .csv, .parquet or .arrow file.", true);
    if (!methods.length) return say(status, "Choose at least one method.", true);
    asked = {
      root: form.dataset.root, model: at("model").value, version: at("version").value.trim(),
      predictions: at("predictions").value.trim(), body: given, type: TYPES[ending], name: given.name, ending,
    };
    answers = [];
    at("run").disabled = true;
    try {
      for (const method of methods) {
        say(status, `Estimating with ${method}, ${answers.length + 1} of ${methods.length}…`);
        const query = [["keep", "false"], ["method", method]];
        if (!asked.predictions) query.push(["include", "histogram"]);
        if (method === TRACED) query.push(["include", "trace"]);
        answers.push(await post("estimates", query, "application/json")
          .then(async (answer) => ({ method, estimate: await answer.json() }), (error) => ({ method, problem: error.message })));
      }
    } finally {
      at("run").disabled = false;
    }
    show();
  }

  const good = () => answers.filter((answer) => answer.estimate);

  function show() {
    const found = good();
    results.hidden = !found.length;
    if (!found.length) return say(status, answers[0].problem, true);
    const { size, model, version } = found[0].estimate;
    const refused = answers.length - found.length;
    say(status, `${size.toLocaleString("en")} rows under version ${version} of ${model}: ${found.length} methods answered${refused ? `, ${refused} could not` : ""}.`);
    const classes = found[0].estimate.prevalence.map((row) => row.class);
    const change = (row) => Math.round(1e9 * Math.abs(row.estimate - row.source));
    const moved = [...found[found.length - 1].estimate.prevalence].sort((a, b) => change(b) - change(a) || a.source - b.source)[0].class;
    at("shown").replaceChildren(...classes.map((name) => new Option(name, name, false, name === moved)));
    at("by").replaceChildren(...found.map((answer) => new Option(answer.method, answer.method, false, answer.method === "mle")));
    table(classes);
    doubts();
    charts();
    at("answers").focus();
  }

  function table(classes) {
    const head = element("tr");
    head.append(...["Method", ...classes].map((name, i) => element("th", name, { scope: "col", className: i ? "n" : "" })), element("th", "Shift", { scope: "col" }));
    const [first] = good();
    const source = element("tr");
    source.append(element("th", "share in training", { scope: "row" }), ...first.estimate.prevalence.map((row) => element("td", percent(row.source), { className: "n" })), element("td", ""));
    const rows = answers.map(({ method, estimate, problem }) => {
      const row = element("tr");
      row.append(element("th", method, { scope: "row" }));
      if (problem) {
        row.append(element("td", problem, { colSpan: classes.length + 1 }));
        return row;
      }
      for (const share of estimate.prevalence) {
        const cell = element("td", percent(share.estimate), { className: "n" });
        if (share.lower !== null) cell.append(element("small", `${percent(share.lower).replace(" %", "")}–${percent(share.upper)}`));
        row.append(cell);
      }
      row.append(element("td", estimate.shift === null ? "not tested" : estimate.shift.detected ? "detected" : "no"));
      return row;
    });
    const whole = at("answers-table");
    whole.tHead.replaceChildren(head);
    whole.tBodies[0].replaceChildren(source, ...rows);
  }

  function doubts() {
    const said = new Map();
    for (const { method, estimate } of good()) {
      for (const { code, message } of estimate.warnings) {
        const known = said.get(code) ?? { message, methods: [] };
        known.methods.push(method);
        said.set(code, known);
      }
    }
    const list = element("ul", undefined, { className: "warnings" });
    for (const [code, { message, methods }] of said) {
      const item = element("li");
      item.append(element("code", code), ` ${message} (${methods.join(", ")})`);
      list.append(item);
    }
    at("warnings").replaceChildren(...(said.size ? [element("h3", "What to doubt, and what to do"), list] : []));
  }

  function charts() {
    const name = at("shown").value;
    const row = (estimate) => estimate.prevalence.find((share) => share.class === name);
    const rows = good().map(({ method, estimate }) => ({ method, value: row(estimate).estimate, lower: row(estimate).lower, upper: row(estimate).upper }));
    PriorshiftCharts.draw(at("methods-chart"), "methods", { rows, source: row(good()[0].estimate).source });
    scores(name);
    const traced = good().find(({ estimate }) => estimate.trace);
    at("trace-note").textContent = traced ? "" : `Choose ${TRACED} to see its iterations.`;
    if (!traced) return at("trace-chart").replaceChildren();
    const k = traced.estimate.prevalence.findIndex((share) => share.class === name);
    PriorshiftCharts.draw(at("trace-chart"), "trace", { lines: { [name]: traced.estimate.trace.map((step) => step[k]) } });
  }

  function scores(name) {
    const by = good().find(({ method }) => method === at("by").value);
    const counted = by.estimate.histogram;
    at("scores-note").textContent = counted ? `Adjusted to the estimate of ${by.method}; rows on a logarithmic scale.` : "There are no scores to count.";
    if (!counted) return at("scores-chart").replaceChildren();
    PriorshiftCharts.draw(at("scores-chart"), "histogram", { class: name, bins: counted.bins, before: counted.before[name], after: counted.after[name] });
  }

  async function download() {
    say(at("download-status"), "Adjusting…");
    try {
      const answer = await post("posteriors", [["method", at("by").value]], asked.type);
      const link = element("a", "", { href: URL.createObjectURL(await answer.blob()), download: asked.name.replace(/(\.[a-z]+)$/i, "-adjusted$1") });
      link.click();
      URL.revokeObjectURL(link.href);
      say(at("download-status"), `Saved as ${link.download}.`);
    } catch (error) {
      say(at("download-status"), error.message, true);
    }
  }

  // What the version cannot do is not offered, and says why.
  async function offer() {
    const version = encodeURIComponent(at("version").value.trim()).replace("%40", "@");
    const answer = await fetch(`${form.dataset.root}/v1/models/${encodeURIComponent(at("model").value)}/versions/${version}`);
    if (!answer.ok) return say(status, (await answer.json()).detail, true);
    status.replaceChildren();
    for (const { name, available, reason } of (await answer.json()).methods) {
      const box = form.querySelector(`[name=method][value="${name}"]`);
      box.disabled = !available;
      box.closest("label").title = reason ?? box.dataset.does;
    }
  }

  for (const id of ["model", "version"]) at(id).addEventListener("change", () => offer().catch((error) => say(status, error.message, true)));
  offer().catch((error) => say(status, error.message, true));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run().catch((error) => say(status, error.message, true));
  });
  at("shown").addEventListener("change", charts);
  at("by").addEventListener("change", () => scores(at("shown").value));
  at("get").addEventListener("click", download);
  for (const kind of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) file.files = event.dataTransfer.files;
    });
  }
})();
