const data = JSON.parse(document.getElementById("data").textContent);
const by = id => document.getElementById(id);
// Plotly reads a little HTML in its texts: labels are data and must come out as they are
const plain = text => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const symbols = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "triangle-left",
  "triangle-right", "hexagon"];
const glyphs = "●■◆▲▼✚✖◀▶⬢";

const make = (tag, set = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), set);
  element.append(...children);
  return element;
};
const DRAG = matchMedia("(pointer: coarse)").matches ? false : "zoom";  // a finger on a chart scrolls the page
const WIDTH = 2.2, CASING = 2.6;  // of a curve's line, and more for each curve that lies on it
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];  // a model's twins
// What a model's curves are drawn with
const mark = (i, colour) => {
  const element = make("span", { textContent: glyphs[i % glyphs.length] });
  element.style.color = colour;
  return element;
};
const chosen = name => document.querySelector(`[name="${name}"]:checked`).value;

const ink = key => getComputedStyle(document.documentElement).getPropertyValue(key).trim();

// A switch among choices, one of which is on
function choices(name, legend, options, changed) {
  const field = make("fieldset", { onchange: changed }, make("legend", { textContent: legend }));
  options.forEach(([value, text], i) => field.append(
    make("label", {}, make("input", { type: "radio", name, value, checked: i === 0 }), " ", text)));
  return field;
}

for (const [i, model] of data.models.entries()) {
  const box = make("input", { type: "checkbox", checked: true });
  box.dataset.model = model.label;
  by("models").append(make("label", {}, box, " ", mark(i, model.colour), " ", model.label));
}

// A headline chart stands open; of the others each is folded, and drawn once it is opened
const plots = data.charts.map((chart, number) => {
  const plot = make("div", { className: "plot" }), note = make("p"), name = `panel-${number}`;
  const said = make("ul", { className: "findings" });
  const head = make("h3", { textContent: chart.title }), entry = { chart, name, note, plot, said };
  const parts = [note, plot, said];
  if (chart.panels.length > 1)
    parts.unshift(choices(name, "definition", chart.panels.map((panel, i) => [i, panel.name]), () => show(entry)));
  if (chart.headline) {
    entry.section = make("section", {}, head, ...parts);
    document.querySelector("#headline .charts").append(entry.section);
  } else {
    entry.section = make("details", { ontoggle: () => show(entry) }, make("summary", {}, head), ...parts);
    by("more").append(entry.section);
  }
  return entry;
});
by("overlay").hidden = !data.published;
by("source").hidden = !data.published;

function band(line, x) {
  // one closed polygon a stretch of known layers: a gap stays a gap; a single layer becomes a whisker
  const traces = [], xs = [], ys = [];
  for (let i = 0; i < x.length; i++) {
    if (line.low[i] === null || line.high[i] === null) continue;
    let j = i;
    while (j + 1 < x.length && line.low[j + 1] !== null && line.high[j + 1] !== null) j++;
    if (j === i) {
      traces.push({ x: [x[i], x[i]], y: [line.low[i], line.high[i]], mode: "lines", hoverinfo: "skip",
        line: { color: line.colour, width: 1.5 } });
    } else {
      for (let k = i; k <= j; k++) { xs.push(x[k]); ys.push(line.high[k]); }
      for (let k = j; k >= i; k--) { xs.push(x[k]); ys.push(line.low[k]); }
      xs.push(x[i], null); ys.push(line.high[i], null);
    }
    i = j;
  }
  if (xs.length) traces.unshift({ x: xs, y: ys, mode: "lines", fill: "toself", hoverinfo: "skip",
    line: { width: 0 }, fillcolor: line.colour + "33" });
  return traces;
}

// What the view of a panel is: of the chosen statistic, or of the only one
function shown({ chart, name }) {
  const panel = chart.panels[chart.panels.length > 1 ? chosen(name) : 0];
  return { panel, view: panel.views[chosen("statistic")] ?? Object.values(panel.views)[0] };
}

const visible = (view, hidden) => view.lines.filter(line =>
  !(hidden.has(line.run_label) || (line.published && !by("published").checked)));

// The y axis that all headline charts of one scale have, so that what is higher on the page is more
function commonRange(scale) {
  const values = plots.filter(entry => entry.chart.headline).map(shown).filter(({ view }) => view.scale === scale)
    .flatMap(({ view }) => [...visible(view, unseen()).flatMap(line => [...line.y, ...(line.low ?? []), ...(line.high ?? [])]),
      ...(view.chance || view.threshold !== null ? [0] : []), view.threshold])
    .filter(value => value !== null);
  if (!values.length) return {};
  const low = Math.min(...values), high = Math.max(...values), room = 0.05 * (high - low || 1);
  return { range: [low - room, high + room] };
}

function show(entry) {
  const { chart, note, plot, section, said } = entry;
  const depth = chosen("axis") === "depth", hidden = unseen();
  const { panel, view } = shown(entry);
  note.textContent = [panel.definition, panel.direction].filter(text => text).join("; ");
  const isMain = view === panel.views[""];  // which the sentences are of
  const sentences = data.models.map((model, i) => ({ ...model, i })).filter(model =>
    isMain && !hidden.has(model.label) && panel.findings[model.label]);
  said.replaceChildren(...sentences.map(model =>
    make("li", {}, mark(model.i, model.colour), " ", panel.findings[model.label])));
  plot.role = "img";
  plot.ariaLabel = [chart.title, ...sentences.map(model => panel.findings[model.label])].join(". ");
  if (section.open === false) return;
  const bands = [], lines = [], notes = [];
  for (const line of visible(view, hidden)) {
    const x = line.layers.map(layer => depth ? layer / Math.max(line.last, 1) : layer);
    if (by("bands").checked && line.low) bands.push(...band(line, x));
    const interval = line.low ? " (%{customdata[0]:.4f} to %{customdata[1]:.4f})" : "";
    lines.push({ x, y: line.y, name: plain(line.label), mode: "lines+markers", connectgaps: false,
      customdata: line.low ? line.y.map((_, i) => [line.low[i], line.high[i]]) : undefined,
      hovertemplate: "%{y:.4f}" + interval,
      line: { color: line.colour, width: (line.published ? 1.3 : WIDTH) + CASING * line.under, dash: line.published ? "dash" : DASHES[line.dash % DASHES.length] },
      marker: { size: line.published ? 5 : 7, color: line.colour,
        symbol: symbols[line.marker % symbols.length] + (line.published ? "-open" : "") } });
  }
  const axis = { gridcolor: ink("--line"), linecolor: ink("--faint"), zeroline: false, automargin: true };
  const shapes = [];
  const rule = (y, width, dash) => shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, layer: "below",
    line: { color: ink("--ink"), width, dash } });
  const aside = (y, text, yanchor) => notes.push({ xref: "paper", x: 1, y, text, showarrow: false, xanchor: "left", yanchor });
  if (view.negative || view.chance) rule(0, 1, "solid");
  if (view.chance) aside(0, "chance", "middle");
  if (view.threshold !== null) {
    rule(view.threshold, 1, "dash");
    aside(view.threshold, Math.round(100 * view.threshold) + "%", "bottom");
  }
  const log = view.scale === "log", scaled = log ? { type: "log", dtick: 1, minor: { dtick: "D1" } }
    : chart.headline ? commonRange(view.scale) : view.chance || view.threshold !== null ? { rangemode: "tozero" } : {};
  const options = { displaylogo: false, displayModeBar: "hover", responsive: true, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };
  const layout = {
    margin: { l: 56, r: view.chance ? 52 : 34, t: 28, b: 44 }, showlegend: false, shapes, annotations: notes,
    modebar: { bgcolor: "rgba(0,0,0,0)", color: ink("--faint"), activecolor: ink("--ink") },
    dragmode: DRAG, hovermode: depth ? "closest" : "x unified", hoverlabel: { bgcolor: ink("--soft") },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink("--ink"), size: 13 },
    xaxis: { ...axis, showgrid: false, showline: true, title: { text: depth ? "relative depth (1 = last layer)" : data.axis },
      ...(depth ? { range: [-0.04, 1.04] } : { tickformat: "d", hoverformat: "d", range: [-0.4, panel.last + 0.4],
        dtick: Math.max(1, Math.ceil(panel.last / 13)), tick0: 0 }) },
    yaxis: { ...axis, title: { text: plain(view.y_label).replace(/(.{24,36}?) /g, "$1<br>") }, ...scaled },
  };
  Plotly.react(plot, [...bands, ...lines], layout, options);
  const [bottom, top] = plot.layout.yaxis.range, pixels = (plot.clientHeight - 72) / (top - bottom);
  const thin = log || !by("bands").checked ? [] : visible(view, hidden).filter(line => line.low &&
    Math.max(...line.low.map((low, i) => low === null ? 0 : line.high[i] - low)) * pixels < 2 * WIDTH);
  if (thin.length) said.append(make("li", { className: "aside",
    textContent: `The intervals are thinner than the line, or hardly wider: ${thin.map(line => line.label).join(", ")}.` }));
}
const unseen = () =>
  new Set([...document.querySelectorAll("[data-model]:not(:checked)")].map(box => box.dataset.model));
const draw = () => plots.forEach(show);
document.querySelector(".controls").addEventListener("change", draw);
// Models' checkpoints one training step at a time; the slider's end shows all. Other models stay as they are
by("step")?.addEventListener("input", ({ target }) => {
  const steps = [...new Set(Object.values(data.steps))].sort((a, b) => a - b), step = steps[target.value];
  for (const box of document.querySelectorAll("[data-model]"))
    if (box.dataset.model in data.steps) box.checked = step === undefined || data.steps[box.dataset.model] === step;
  by("step").lastElementChild.textContent = step === undefined ? "all" : step.toLocaleString("en");
  draw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();

// The table, at a place, and its text for elsewhere
const cells = () => data.side.map(row => row.cells.map(cell => cell[chosen("place")]));
function fill() {
  const rows = document.querySelectorAll("#side tbody tr");
  cells().forEach((row, i) => row.forEach((cell, j) => rows[i].cells[j + 1].replaceChildren(
    ...(cell ? [cell.text + " ", make("small", { textContent: cell.aside })] : []))));
}
by("place").addEventListener("change", fill);

const forms = {
  Markdown: (head, body) => {
    const line = row => "| " + row.map(cell => cell.replace(/\|/g, "\\|")).join(" | ") + " |";
    return [line(head), "|---|" + "---:|".repeat(head.length - 1), ...body.map(line)].join("\n");
  },
  CSV: () => {
    const quoted = value => /[",\n]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value;
    const rows = data.side.flatMap((row, i) => row.labels.map((label, j) => [row, label, cells()[i][j]]));
    const beside = ["raw", "chance"];
    return [["curve", "model", "layer", "value", "low", "high", ...beside], ...rows.filter(([, , cell]) => cell).map(
      ([row, label, cell]) => [row.curve, label, cell.layer, cell.value, cell.low, cell.high, ...beside.map(name => cell.beside[name])])]
      .map(row => row.map(value => quoted(String(value ?? ""))).join(",")).join("\n");
  },
  LaTeX: (head, body) => {
    const signs = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };
    const escaped = text => text.replace(/[\\~^]|[&%$#_{}]/g, sign => signs[sign] ?? "\\" + sign);
    const line = row => row.map(escaped).join(" & ") + " \\\\";
    return [`\\begin{tabular}{l${"r".repeat(head.length - 1)}}`, "\\toprule", line(head), "\\midrule", ...body.map(line),
      "\\bottomrule", "\\end{tabular}"].join("\n");
  },
};
for (const button of document.querySelectorAll("[data-form]")) button.addEventListener("click", async () => {
  const read = row => [...row.cells].map(cell => cell.textContent.trim());
  const [head, ...body] = [...document.querySelectorAll("#side tr")].map(read);
  const box = by("copied");
  box.hidden = false;
  box.value = forms[button.dataset.form](head, body);
  box.select();
  try { await navigator.clipboard.writeText(box.value); by("told").textContent = "copied"; }
  catch { by("told").textContent = document.execCommand("copy") ? "copied" : "selected below, to copy"; }
});
