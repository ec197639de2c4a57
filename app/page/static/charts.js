// Draws with BokehJS what the page's data blocks and the try-it page hold. Colours come from the
// page's style, so that light and dark are decided in one place; none of them carries meaning alone.
"use strict";
const PriorshiftCharts = (() => {
  const DASHES = ["solid", "dashed", "dotted", "dotdash"];
  const MARKS = ["circle", "square", "triangle", "diamond"];
  const HUES = ["blue", "orange", "green", "pink", "yellow", "sky"];
  const drawn = new Map();

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    const names = ["ink", "soft", "line", "card", "grey", ...HUES];
    return Object.fromEntries(names.map((name) => [name, of(name)]));
  }

  const percent = () => new Bokeh.NumeralTickFormatter({ format: "0.[00]%" });

  function figure(c, height, more = {}) {
    const font = "system-ui, sans-serif";
    const plot = new Bokeh.Plotting.figure({
      height,
      sizing_mode: "stretch_width",
      toolbar_location: null,
      tools: [],
      background_fill_color: c.card,
      border_fill_color: c.card,
      outline_line_color: null,
      min_border_left: 8,
      min_border_right: 16,
      ...more,
    });
    for (const axis of [...plot.xaxes, ...plot.yaxes]) {
      Object.assign(axis, {
        axis_line_color: c.line,
        major_tick_line_color: c.line,
        minor_tick_line_color: null,
        major_label_text_color: c.soft,
        major_label_text_font: font,
        major_label_text_font_size: "13px",
        axis_label_text_color: c.soft,
        axis_label_text_font: font,
        axis_label_text_font_size: "13px",
        axis_label_text_font_style: "normal",
      });
    }
    for (const grid of [...plot.xgrids, ...plot.ygrids]) grid.grid_line_color = c.line;
    return plot;
  }

  // A legend in the page's own text: it wraps on a phone, and grows with the reader's letters.
  function legend(entries) {
    const list = document.createElement("ul");
    list.className = "key-lines";
    for (const [text, colour] of entries) {
      const item = document.createElement("li");
      item.textContent = text;
      item.style.setProperty("--mark", colour);
      list.append(item);
    }
    return list;
  }

  const short = (name) => (name.length > 18 ? `${name.slice(0, 17)}…` : name);
  const above = (values) => 1.06 * Math.max(1e-9, ...values.filter((v) => v !== null));

  // Names that are cut may come to the same: an axis wants them apart.
  function labels(names) {
    const seen = new Map();
    return names.map((name) => {
      const label = short(name);
      const count = (seen.get(label) ?? 0) + 1;
      seen.set(label, count);
      return count > 1 ? `${label} (${count})` : label;
    });
  }

  function bars(data, c) {
    const rows = [...data.rows].reverse();
    const y = labels(rows.map((row) => row.class));
    const plot = figure(c, 110 + 44 * rows.length, {
      y_range: y,
      x_range: [0, above(rows.flatMap((row) => [row.upper, row.estimate, row.source, row.counted]))],
    });
    plot.xaxes[0].formatter = percent();
    plot.ygrids[0].grid_line_color = null;
    const column = (name) => rows.map((row) => row[name]);
    plot.hbar({ y, left: 0, right: column("estimate"), height: 0.5, fill_color: c.blue, fill_alpha: 0.75, line_color: null });
    const held = rows.map((row, i) => [row, y[i]]).filter(([row]) => row.lower !== null);
    if (held.length) {
      plot.segment({ x0: held.map(([r]) => r.lower), x1: held.map(([r]) => r.upper), y0: held.map(([, at]) => at), y1: held.map(([, at]) => at), line_color: c.ink, line_width: 2 });
    }
    plot.scatter({ x: column("source"), y, marker: "diamond", size: 13, fill_color: c.card, line_color: c.ink, line_width: 2 });
    const counted = rows.map((row, i) => [row, y[i]]).filter(([row]) => row.counted !== null);
    if (counted.length) {
      plot.scatter({ x: counted.map(([r]) => r.counted), y: counted.map(([, at]) => at), marker: "x", size: 11, line_color: c.orange, line_width: 3 });
    }
    return plot;
  }

  function trace(data, c) {
    const names = Object.keys(data.lines);
    const count = data.lines[names[0]].length;
    const plot = figure(c, 260, { y_range: [0, above(names.flatMap((name) => data.lines[name]))] });
    plot.xaxes[0].axis_label = "iteration";
    plot.xaxes[0].ticker = new Bokeh.BasicTicker({ min_interval: 1 });
    plot.yaxes[0].formatter = percent();
    const x = Array.from({ length: count }, (_, i) => i);
    names.forEach((name, k) => {
      const look = { line_color: c[HUES[k % HUES.length]] };
      plot.line({ x, y: data.lines[name], line_width: 2.5, line_dash: DASHES[Math.floor(k / 2) % DASHES.length], ...look });
      if (count <= 60) plot.scatter({ x, y: data.lines[name], marker: MARKS[k % MARKS.length], size: 6, fill_color: look.line_color, ...look });
    });
    return plot;
  }

  function series(data, c) {
    const x = data.time.map((time) => Date.parse(time));
    const every = x.map((_, i) => i);
    const at = (column, which) => which.map((i) => column[i]);
    const top = above(data.lines.flatMap((line) => [...line.upper, ...line.estimate, ...line.source]));
    const main = figure(c, 300, { x_axis_type: "datetime", y_range: [0, top] });
    main.yaxes[0].formatter = percent();
    const alarms = every.filter((i) => data.detected[i]);
    data.lines.forEach((line, k) => {
      const color = c[HUES[k % HUES.length]];
      const said = every.filter((i) => line.estimate[i] !== null);
      const held = said.filter((i) => line.lower[i] !== null);
      main.varea({ x: at(x, held), y1: at(line.lower, held), y2: at(line.upper, held), fill_color: color, fill_alpha: 0.18 });
      main.line({ x: at(x, said), y: at(line.source, said), line_color: data.lines.length > 1 ? color : c.grey, line_width: 1.5, line_dash: "dashed" });
      main.line({ x: at(x, said), y: at(line.estimate, said), line_color: color, line_width: 2.5 });
      if (said.length <= 120) main.scatter({ x: at(x, said), y: at(line.estimate, said), marker: MARKS[k % MARKS.length], size: 5, fill_color: color, line_color: color });
    });
    const [first] = data.lines;
    const marked = alarms.filter((i) => first.estimate[i] !== null);
    main.scatter({ x: at(x, marked), y: at(first.estimate, marked), marker: "triangle", size: 12, fill_color: c.orange, line_color: c.card });
    const opened = data.alarms.map((time) => Date.parse(time)).filter((time) => time >= x[0] && time <= x[x.length - 1]);
    main.scatter({ x: opened, y: opened.map(() => 0.97 * top), marker: "inverted_triangle", size: 12, fill_color: c.pink, line_color: c.card });
    const children = [main];
    const tested = every.filter((i) => data.p_value[i] !== null);
    if (tested.length) {
      const smallest = 1e-12;
      const tests = figure(c, 120, { x_axis_type: "datetime", y_axis_type: "log", x_range: main.x_range, y_range: [smallest, 2] });
      tests.yaxes[0].axis_label = "p-value";
      tests.yaxes[0].ticker = new Bokeh.FixedTicker({ ticks: [1e-12, 1e-8, 1e-4, 1] });
      tests.ygrids[0].ticker = tests.yaxes[0].ticker;
      tests.scatter({ x: at(x, tested), y: at(data.p_value, tested).map((p) => Math.max(p, smallest)), size: 5, fill_color: c.grey, line_color: c.grey });
      tests.line({ x: at(x, tested), y: at(data.level, tested), line_color: c.orange, line_width: 1.5, line_dash: "dotted" });
      children.push(tests);
    }
    const sizes = figure(c, 90, { x_axis_type: "datetime", x_range: main.x_range, y_range: [0, above(data.size)] });
    sizes.yaxes[0].axis_label = "rows";
    sizes.yaxes[0].formatter = new Bokeh.NumeralTickFormatter({ format: "0.[0]a" });
    sizes.yaxes[0].ticker = new Bokeh.BasicTicker({ desired_num_ticks: 2 });
    sizes.ygrids[0].visible = false;
    sizes.segment({ x0: x, x1: x, y0: x.map(() => 0), y1: data.size, line_color: c.grey, line_width: 3 });
    children.push(sizes);
    for (const plot of children) plot.min_border_left = 64;
    return new Bokeh.Column({ children, sizing_mode: "stretch_width" });
  }

  function calibration(data, c) {
    const plot = figure(c, 300, { x_range: [0, 1], y_range: [0, 1] });
    plot.xaxes[0].axis_label = `score of ${short(data.class)}`;
    plot.yaxes[0].axis_label = "how often true";
    plot.xaxes[0].formatter = percent();
    plot.yaxes[0].formatter = percent();
    plot.line({ x: [0, 1], y: [0, 1], line_color: c.soft, line_dash: "dotted", line_width: 1.5 });
    const looks = { raw: [c.grey, "square", "dashed"], calibrated: [c.blue, "circle", "solid"] };
    for (const [kind, [color, marker, line_dash]] of Object.entries(looks)) {
      const points = data[kind];
      if (!points) continue;
      const x = points.map((p) => p.score), y = points.map((p) => p.frequency);
      plot.segment({ x0: x, x1: x, y0: points.map((p) => p.lower), y1: points.map((p) => p.upper), line_color: color, line_alpha: 0.6, line_width: 1.5 });
      plot.line({ x, y, line_color: color, line_width: 2, line_dash });
      plot.scatter({ x, y, marker, size: 8, fill_color: color, line_color: c.card });
    }
    return plot;
  }

  function histogram(data, c) {
    const edge = (i) => i / data.bins;
    const counts = [...data.before, ...data.after];
    const floor = 0.7;
    const plot = figure(c, 260, { x_range: [0, 1], y_axis_type: "log", y_range: [floor, 1.5 * Math.max(2, ...counts)] });
    plot.xaxes[0].axis_label = `score of ${short(data.class)}`;
    plot.xaxes[0].formatter = percent();
    plot.yaxes[0].axis_label = "rows";
    plot.yaxes[0].formatter = new Bokeh.NumeralTickFormatter({ format: "0.[0]a" });
    const half = 0.46 / data.bins;
    const quads = (values, shift, look) => {
      const bins = values.map((_, i) => i).filter((i) => values[i] > 0);
      plot.quad({
        left: bins.map((i) => edge(i) + shift + 0.04 / data.bins), right: bins.map((i) => edge(i) + shift + half),
        bottom: bins.map(() => floor), top: bins.map((i) => values[i]), ...look,
      });
    };
    quads(data.before, 0, { fill_color: c.grey, fill_alpha: 0.55, line_color: c.grey });
    quads(data.after, 0.5 / data.bins, { fill_color: c.blue, fill_alpha: 0.9, line_color: c.blue });
    return plot;
  }

  // Points with their spread, by method.
  function dots(rows, c, source) {
    const shown = [...rows].reverse();
    const y = shown.map((row) => row.method);
    const ends = shown.flatMap((row) => [row.value, row.upper, source]).filter((v) => v !== null && v !== undefined);
    const plot = figure(c, 60 + 32 * shown.length, { y_range: y, x_range: [0, above(ends)] });
    plot.xaxes[0].formatter = percent();
    if (source !== undefined) {
      plot.segment({ x0: [source], x1: [source], y0: [y[0]], y1: [y[y.length - 1]], line_color: c.grey, line_dash: "dashed", line_width: 2 });
    }
    const held = shown.filter((row) => row.lower !== null && row.lower !== undefined);
    plot.segment({ x0: held.map((r) => r.lower), x1: held.map((r) => r.upper), y0: held.map((r) => r.method), y1: held.map((r) => r.method), line_color: c.blue, line_width: 2 });
    plot.scatter({ x: shown.map((row) => row.value), y, size: 10, fill_color: c.blue, line_color: c.card });
    return plot;
  }

  const scorecard = (data, c) =>
    dots(data.rows.map((row) => ({
      method: row.method, value: row.error,
      lower: row.spread === null ? null : Math.max(0, row.error - row.spread),
      upper: row.spread === null ? null : row.error + row.spread,
    })), c);
  const methods = (data, c) => dots(data.rows, c, data.source);

  const KINDS = { bars, trace, series, calibration, histogram, scorecard, methods };

  function clear(element) {
    const before = drawn.get(element);
    if (!before) return;
    drawn.delete(element);
    before.clear();
    const place = Bokeh.documents.indexOf(before);
    if (place >= 0) Bokeh.documents.splice(place, 1);
  }

  async function draw(element, kind, data) {
    clear(element);
    const target = document.createElement("div");
    try {
      const colours = theme();
      const plot = KINDS[kind](data, colours);
      const names = kind === "trace" ? Object.keys(data.lines) : kind === "series" ? data.lines.map((line) => line.name) : [];
      element.replaceChildren(legend(names.map((name, k) => [name, colours[HUES[k % HUES.length]]])), target);
      element.chart = { kind, data };
      await Bokeh.Plotting.show(plot, target);
      drawn.set(element, plot.document);
      element.dataset.drawn = kind;
    } catch (error) {
      console.error(error);
      const note = document.createElement("p");
      note.className = "loading";
      note.textContent = "The chart could not be drawn; the table has its numbers.";
      element.replaceChildren(note);
    }
  }

  function drawAll(root = document) {
    for (const element of [...drawn.keys()]) if (!element.isConnected) clear(element);
    for (const element of root.querySelectorAll("[data-chart]")) {
      const block = element.querySelector('script[type="application/json"]');
      if (!block) continue;
      element.block = block.textContent;
      draw(element, element.dataset.chart, JSON.parse(element.block));
    }
  }

  Bokeh.set_log_level("warn");
  drawAll();
  window.addEventListener("priorshift:fresh", (event) => drawAll(event.detail));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const element of [...drawn.keys()]) draw(element, element.chart.kind, element.chart.data);
  });
  return { draw };
})();
