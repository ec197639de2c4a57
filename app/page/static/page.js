// Keeps what is marked data-refresh up to date, and says so to who cannot see it.
"use strict";
(() => {
  const WAIT_AFTER_ERROR = 4;
  let timer = null;

  function parts(root) {
    return [...root.querySelectorAll("[data-refresh]")];
  }

  function say(text) {
    const note = document.querySelector("[data-fresh]");
    if (note) note.textContent = text;
  }

  // Whoever is at work in a part, with a field or a selection, is left alone.
  function busy(part) {
    const at = document.activeElement;
    return part.contains(at) && at.matches("select, textarea, input:not([type=checkbox])");
  }

  async function refresh() {
    const mine = parts(document);
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (answer.redirected) return location.reload();
      if (!answer.ok) throw new Error(`the service answers ${answer.status}`);
      const fresh = parts(new DOMParser().parseFromString(await answer.text(), "text/html"));
      mine.forEach((part, i) => {
        if (!fresh[i] || busy(part)) return;
        const focused = part.contains(document.activeElement) ? where(document.activeElement) : null;
        keep(part, fresh[i]);
        part.replaceChildren(...document.adoptNode(fresh[i]).childNodes);
        if (focused) part.querySelector(focused)?.focus();
        window.dispatchEvent(new CustomEvent("priorshift:fresh", { detail: part }));
      });
      plan(1);
    } catch (error) {
      say(`Not refreshed: ${error.message}. Trying again.`);
      plan(WAIT_AFTER_ERROR);
    }
  }

  // What has not changed stays as it is: charts of the same numbers, and what the reader unfolded.
  function keep(part, fresh) {
    const charts = [...part.querySelectorAll("[data-drawn]")];
    for (const chart of fresh.querySelectorAll("[data-chart]")) {
      const same = charts.find((old) => old.block === chart.querySelector("script")?.textContent);
      if (same) chart.replaceWith(same);
    }
    const folds = [...part.querySelectorAll("details")];
    fresh.querySelectorAll("details").forEach((details, i) => {
      if (folds[i]) details.open = folds[i].open;
    });
  }

  function where(element) {
    const href = element.getAttribute("href");
    return href ? `[href="${CSS.escape(href)}"]` : null;
  }

  function plan(slower) {
    clearTimeout(timer);
    const seconds = Math.min(...parts(document).map((part) => Number(part.dataset.refresh) || 15));
    if (!document.hidden && Number.isFinite(seconds)) timer = setTimeout(refresh, 1000 * seconds * slower);
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden && parts(document).length) refresh();
  });
  // Somebody has seen an alert.
  async function acknowledge(button) {
    button.disabled = true;
    const answer = await fetch(button.dataset.acknowledge, {
      method: "PATCH", headers: { "Content-Type": "application/json" }, body: '{"state": "acknowledged"}',
    });
    if (answer.ok) return refresh();
    button.disabled = false;
    say(`Not acknowledged: ${(await answer.json()).detail}`);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-acknowledge]");
    if (button) acknowledge(button).catch((error) => say(`Not acknowledged: ${error.message}`));
  });
  // A form that chooses what is shown: no button needed where there are scripts.
  document.addEventListener("change", (event) => event.target.closest("form[data-auto]")?.requestSubmit());
  if (parts(document).length) plan(1);
})();
