const explorer = data.explorer, missing = -32768;
explore();

function explore() {
  const bytes = text => Uint8Array.from(atob(text), sign => sign.charCodeAt(0));
  const numbers = (text, steps) =>
    Float32Array.from(new Int16Array(bytes(text).buffer), value => value === missing ? NaN : value / steps);
  const [unit, fine] = explorer.steps, { words, counts, senses, pos, projected } = explorer;
  const models = explorer.models.map(model => {
    const symbol = data.models.findIndex(each => each.label === model.label);
    const score = name => model[name] && numbers(model[name], fine);
    return { ...model, symbol, colour: data.models[symbol].colour, constant: new Set(model.constant),
      raw: score("raw"), adjusted: score("adjusted"), half: score("half"), variance: score("variance"),
      contextuality: score("contextuality") };
  });

  // A word's occurrences are unpacked once it is opened, and kept. `rows`: of each model, pairs of an occurrence and the
  // row of its point
  const blocks = new Map(), none = { occurrences: [], models: models.map(() => ({ rows: [], own: [], common: [] })) };
  async function load(i) {
    if (!blocks.has(i)) {
      const stream = new Blob([bytes(by(`word-${i}`).textContent)]).stream().pipeThrough(new DecompressionStream("gzip"));
      const block = JSON.parse(await new Response(stream).text());
      blocks.set(i, {
        occurrences: block.occurrences.map(([text, start, end, sense, sentence]) => ({ text, start, end, sense, sentence })),
        models: block.models.map(({ at, own, common }) =>
          ({ rows: at.map((id, row) => [id, row]), own: numbers(own, unit), common: numbers(common, unit) })),
      });
    }
    return blocks.get(i);
  }
  let block = none;  // of the chosen word
  const last = Math.max(...models.map(model => model.last));
  by("layer").max = by("layer").value = last;
  const depth = () => by("layer").value / Math.max(last, 1);
  // Which of its layers a model shows: the measured one nearest to the slider
  const indexOf = ({ layers, last }) => {
    const wanted = chosen("axis") === "depth" ? depth() * last : Number(by("layer").value);
    return layers.reduce((best, layer, i) => Math.abs(layer - wanted) < Math.abs(layers[best] - wanted) ? i : best, 0);
  };

  const tags = [...new Set(pos)].filter(tag => tag).sort();
  by("tagged").hidden = !tags.length;
  const why = i => projected[i] ? "" : "<br>its occurrences aren't on this page";

  // The words to choose from: ambiguous ones first, then by frequency
  const order = words.map((_, i) => i).filter(i => projected[i])
    .sort((a, b) => senses[b] - senses[a] || counts[b] - counts[a] || (words[a] < words[b] ? -1 : 1));
  const first = i => models.some(model => model.constant.has(i));
  const told = i => [pos[i], senses[i] ? `${senses[i]} senses` : "", counts[i], first(i) ? "stands only first" : ""]
    .filter(part => part).join(", ");
  const option = i => make("option", { value: i, textContent: `${words[i]} (${told(i)})` });
  for (const [label, some] of [["with labelled senses", order.filter(i => senses[i])],
    ["others, by frequency", order.filter(i => !senses[i])]])
    if (some.length) by("word").append(make("optgroup", { label }, ...some.map(option)));
  let word = order[0], focused = null;

  const grid = id => models.map(model => {
    const plot = make("div", { className: "plot" }), note = make("p"), list = make("div", { className: "words" });
    const part = make("section", {}, make("h4", {}, mark(model.symbol, model.colour), " ", model.label), note, plot, list);
    by(id).append(part);
    return { part, note, plot, list };
  });
  const clouds = grid("clouds"), scatters = grid("scatters"), bars = grid("bars");
  const number = (values, at) => values && Number.isFinite(values[at]) ? values[at].toFixed(3) : "undefined";

  // A sentence with its word marked: as Plotly's HTML in lines, and as elements
  const cut = ({ text, start, end }) => [text.slice(0, start), text.slice(start, end), text.slice(end)];
  function hovered(occurrence) {
    const [before, own, after] = cut(occurrence), lines = [""];
    for (const [i, part] of [before, own, after].entries()) for (const piece of part.split(/(?<=\s)/)) {
      if (lines.at(-1).replace(/<[^>]*>/g, "").length + piece.length > 60) lines.push("");
      lines[lines.length - 1] += i === 1 ? `<b>${plain(piece)}</b>` : plain(piece);
    }
    return (occurrence.sense ? `<i>${plain(occurrence.sense)}</i><br>` : "") + lines.join("<br>");
  }
  const marked = occurrence => {
    const [before, own, after] = cut(occurrence);
    return [before, make("mark", { textContent: own }), after];
  };

  // Senses by hue and marker; without senses, where in the text the sentence stands, from dark to light
  const kinds = () => {
    const senses = new Set(block.occurrences.map(occurrence => occurrence.sense));
    const named = [...senses].filter(sense => sense).sort();
    return senses.has("") ? [...named, ""] : named;
  };
  const look = (sense, i) => sense ? { color: data.hues[i % data.hues.length], symbol: symbols[i % symbols.length] }
    : { color: ink("--faint"), symbol: "circle-open" };

  // One sentence a model on the chosen word: where it lies among the words of this page
  function takeaway(model) {
    const layer = indexOf(model), y = i => model.contextuality?.[i * model.layers.length + layer];
    const name = `In ${model.label}, layer ${model.layers[layer]}, ${words[word]}`;
    if (model.constant.has(word)) return `${name} has one vector by construction: it stands only where nothing is to its left.`;
    if (!Number.isFinite(y(word))) return `${name} has no contextuality of its own: it wasn't measured, or has few uses at like places.`;
    const others = words.map((_, i) => i).filter(i => i !== word && Number.isFinite(y(i)) && !model.constant.has(i));
    const less = others.filter(i => y(i) < y(word)).length, share = Math.round(100 * less / Math.max(others.length, 1));
    return `${name} ${y(word).toFixed(2)}: its uses differ ${Math.round(100 * y(word))}% as much as two words do, ` +
      `more than those of ${share}% of the ${others.length} other words here.`;
  }

  function cloud(model, i, { part, note, plot }) {
    part.hidden = unseen().has(model.label);
    const layer = indexOf(model), own = chosen("plane") === "own", { occurrences } = block, { rows } = block.models[i];
    const at = word * model.layers.length + layer, points = block.models[i][own ? "own" : "common"];
    plot.role = "img";
    plot.ariaLabel = `${rows.length} occurrences of ${words[word]}. ${takeaway(model)}`;
    const spread = points => rows.reduce((sum, [, row]) => {
      const k = 2 * (row * model.layers.length + layer);
      return sum + points[k] ** 2 + points[k + 1] ** 2;
    }, 0) / rows.length;
    // unit rows about their mean m: the mean square is 1 - |m|^2, and |m|^2 follows from the mean cosine
    const whole = model.raw ? (1 - model.raw[at]) * (1 - 1 / counts[word]) : NaN;
    const share = Math.min(spread(points) / whole, 1);
    note.textContent = `layer ${model.layers[layer]}: contextuality ${number(model.contextuality, at)}, self-similarity ${number(model.raw, at)}, ` +
      `explained variance ${number(model.variance, at)}` +
      (Number.isFinite(share) && whole > 1e-4 ? `; the plane shows ${Math.round(100 * share)}% of the spread` : "") +
      (rows.length ? `; ${rows.length} of ${counts[word]} occurrences`
        : block === none ? "" : "; its occurrences in this model aren't on the page");
    const value = (row, l, axis) => points[2 * (row * model.layers.length + l) + axis];
    const reach = axis => {
      const all = rows.flatMap(([, row]) => (own ? [layer] : [...model.layers.keys()]).map(l => value(row, l, axis)));
      const low = Math.min(0, ...all), high = Math.max(0, ...all), pad = 0.06 * Math.max(high - low, 1e-3);
      return [low - pad, high + pad];
    };
    const all = kinds(), plainWord = all.every(sense => !sense);
    const traces = all.map((sense, i) => {
      const mine = rows.filter(([id]) => occurrences[id].sense === sense);
      const places = mine.map(([id]) => occurrences[id].sentence);
      return { x: mine.map(([, row]) => value(row, layer, 0)), y: mine.map(([, row]) => value(row, layer, 1)),
        mode: "markers", ids: mine.map(([id]) => id), customdata: mine.map(([id]) => hovered(occurrences[id])),
        hovertemplate: "%{customdata}<extra></extra>", marker: plainWord
          ? { size: 9, symbol: "circle", color: places, colorscale: "Cividis" }
          : { size: 10, ...look(sense, i), line: { width: 1, color: ink("--paper") } } };
    });
    const ring = rows.filter(([id]) => id === focused);
    traces.push({ x: ring.map(([, row]) => value(row, layer, 0)), y: ring.map(([, row]) => value(row, layer, 1)),
      mode: "markers", hoverinfo: "skip", marker: { size: 20, symbol: "circle-open", color: ink("--ink"), line: { width: 2.5 } } });
    const axis = { zeroline: true, zerolinecolor: ink("--line"), gridcolor: ink("--line"),
      nticks: 5, tickfont: { size: 10 } };
    paint(plot, traces, { xaxis: { ...axis, range: reach(0) }, yaxis: { ...axis, range: reach(1), scaleanchor: "x" }, hovermode: "closest", margin: { l: 40, r: 8, t: 8, b: 30 } },
      { hover: event => attend(Number(event.points[0].id)), click: event => attend(Number(event.points[0].id)) });
  }

  function paint(plot, traces, layout, events) {
    const first = !plot.data;
    Plotly.react(plot, traces, { showlegend: false, dragmode: DRAG, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink("--ink"), size: 12 }, hoverlabel: { bgcolor: ink("--soft"), align: "left" }, ...layout },
      { displayModeBar: false, responsive: true });
    if (first) for (const [name, call] of Object.entries(events)) plot.on(`plotly_${name}`, call);
  }

  // One occurrence in all models, and its sentence in full
  function attend(id) {
    if (id === focused) return;
    focused = id;
    by("sentence").replaceChildren(...(id === null ? [] : marked(block.occurrences[id])));
    for (const item of by("occurrences").children) item.classList.toggle("on", Number(item.dataset.id) === id);
    clouds.forEach(({ plot }, i) => {
      const model = models[i], points = block.models[i][chosen("plane")];
      const rows = block.models[i].rows.filter(([each]) => each === id);
      const at = axis => rows.map(([, row]) => points[2 * (row * model.layers.length + indexOf(model)) + axis]);
      if (plot.data) Plotly.restyle(plot, { x: [at(0)], y: [at(1)] }, [plot.data.length - 1]);
    });
  }

  function scatter(model, { part, note, plot }) {
    part.hidden = unseen().has(model.label) || !model.adjusted;
    if (part.hidden) return;
    const score = model.contextuality ?? model.adjusted, y = i => score[i * model.layers.length + indexOf(model)];
    const layer = indexOf(model), across = chosen("across"), few = across !== "count";
    const place = i => across === "senses" ? senses[i] : tags.indexOf(pos[i]) + 1;
    const some = words.map((_, i) => i).filter(i => Number.isFinite(y(i)) && (!few || place(i)));
    const jitter = i => (i * 0.618 % 1 - 0.5) * 0.5;
    const trace = (mine, marker) => ({ x: mine.map(i => few ? place(i) + jitter(i) : counts[i]), y: mine.map(y), ids: mine,
      mode: "markers", customdata: mine.map(i => [plain(words[i]), plain(told(i)),
        why(i) + (model.constant.has(i) ? "<br>only where nothing is to its left: constant by construction" : "")]), marker,
      hovertemplate: "<b>%{customdata[0]}</b> (%{customdata[1]}): %{y:.3f}%{customdata[2]}<extra></extra>" });
    note.textContent = `layer ${model.layers[layer]}, ${some.length} words` + (some.some(i => model.constant.has(i))
      ? "; a cross: only where nothing is to its left, so that this causal model gives it one vector by construction" : "");
    paint(plot, [
      trace(some.filter(i => !projected[i] && !model.constant.has(i)), { size: 6, symbol: "circle-open", color: ink("--faint") }),
      trace(some.filter(i => projected[i] && !model.constant.has(i)), { size: 7, symbol: symbols[model.symbol % symbols.length], color: model.colour }),
      trace(some.filter(i => model.constant.has(i)), { size: 7, symbol: "x-thin-open", color: ink("--faint") }),
      { ...trace(some.filter(i => i === word), { size: 15, symbol: "circle-open", color: ink("--ink"), line: { width: 2.5 } }),
        mode: "markers+text", text: plain(words[word]), textposition: "top center", textfont: { size: 14 }, hoverinfo: "skip", hovertemplate: null },
    ], { xaxis: across === "pos" ? { title: { text: "part of speech" }, showgrid: false, tickvals: tags.map((_, i) => i + 1), ticktext: tags.map(plain) }
        : few ? { title: { text: "labelled senses" }, dtick: 1, showgrid: false } : { title: { text: "occurrences" }, type: "log", dtick: 1, showgrid: false },
      yaxis: { title: { text: model.contextuality ? "contextuality" : "self-similarity − chance" }, gridcolor: ink("--line"), zerolinecolor: ink("--faint") }, hovermode: "closest",
      margin: { l: 50, r: 8, t: 8, b: 44 } }, { click: explored });
  }

  function ranks(model, { part, note, plot, list }) {
    part.hidden = unseen().has(model.label) || !model.adjusted;
    if (part.hidden) return;
    const layer = indexOf(model), y = i => model.adjusted[i * model.layers.length + layer];
    const all = words.map((_, i) => i).filter(i => Number.isFinite(y(i)));
    const out = all.filter(i => model.constant.has(i)).length;
    const mine = model.listed[indexOf(model)], n = mine.length / 2;
    const error = i => model.half ? model.half[i * model.layers.length + layer] : NaN;
    note.textContent = `layer ${model.layers[layer]}: the ${n} least self-similar words below, the ${n} most self-similar above` +
      (out ? `; ${out} that stand only where nothing is to their left, so that this model gives them one vector, are left out` : "");
    paint(plot, [{ type: "bar", orientation: "h", x: mine.map(y), y: mine.map((_, rank) => rank), ids: mine,
      customdata: mine.map(i => [plain(words[i]), plain(told(i)), Number.isFinite(error(i)) ? ` ± ${error(i).toFixed(3)}` : "", why(i)]),
      hovertemplate: "<b>%{customdata[0]}</b> (%{customdata[1]}): %{x:.3f}%{customdata[2]}%{customdata[3]}<extra></extra>",
      marker: { color: mine.map(i => !projected[i] ? "rgba(0,0,0,0)" : i === word ? ink("--ink") : model.colour), line: { width: 1.5, color: model.colour } },
      error_x: { type: "data", array: mine.map(i => Number.isFinite(error(i)) ? error(i) : 0), color: ink("--ink"), thickness: 1, width: 3 } }],
    { xaxis: { title: { text: "self-similarity − chance" }, gridcolor: ink("--line"), zerolinecolor: ink("--faint") },
      yaxis: { tickvals: mine.map((_, rank) => rank), ticktext: mine.map(i => plain(words[i])), automargin: true },
      margin: { l: 80, r: 8, t: 8, b: 44 } }, { click: explored });
    // The same words as buttons: for keys, and for fingers that a bar is too thin for
    const buttons = some => some.map(i => make("button", { type: "button", textContent: words[i], disabled: !projected[i],
      onclick: () => reveal(i) }));
    list.replaceChildren(make("p", { textContent: "least self-similar" }), ...buttons(mine.slice(0, n)),
      make("p", { textContent: "most self-similar" }), ...buttons(mine.slice(n).reverse()));
  }

  const explored = event => {
    const i = Number(event.points[0].id);
    if (projected[i]) reveal(i);
  };

  // Choose a word from farther down the page, and go to where its occurrences are
  function reveal(i) {
    choose(i);
    by("explorer").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    by("word").focus({ preventScroll: true });
  }

  async function choose(i) {
    word = i;
    focused = null;
    by("word").value = i;
    block = none;
    by("sentence").textContent = "Unpacking the occurrences ...";
    let opened = none, hint = "Point at a dot, or choose a sentence below.";
    try { opened = await load(i); }
    catch (error) { hint = `The occurrences can't be unpacked (${error.message}): a browser of 2023 or later can.`; }
    if (word !== i) return;  // another word was chosen since
    block = opened;
    const { occurrences } = block, all = kinds(), ids = [...occurrences.keys()];
    ids.sort((a, b) => all.indexOf(occurrences[a].sense) - all.indexOf(occurrences[b].sense) || occurrences[a].sentence - occurrences[b].sentence);
    const sign = sense => sense ? mark(all.indexOf(sense), look(sense, all.indexOf(sense)).color) : "○";
    by("key").replaceChildren(...(all.some(sense => sense)
      ? all.map(sense => make("span", {}, sign(sense), ` ${sense || "no label"} `))
      : ["No senses are labelled: from dark to light by where in the text the sentence stands."]));
    by("occurrences").replaceChildren(...ids.map(id => {
      const item = make("li", { tabIndex: 0, onfocus: () => attend(id), onmouseenter: () => attend(id) }, ...marked(occurrences[id]));
      if (all.some(sense => sense)) item.prepend(sign(occurrences[id].sense), " ");
      item.dataset.id = id;
      return item;
    }));
    by("sentence").textContent = hint;
    move();
  }

  function move() {
    by("at").textContent = chosen("axis") === "depth"
      ? `${Math.round(100 * depth())}% of the depth` : by("layer").value;
    by("takeaways").replaceChildren(...models.filter(model => !unseen().has(model.label)).map(model =>
      make("li", {}, mark(model.symbol, model.colour), " ", takeaway(model))));
    models.forEach((model, i) => { cloud(model, i, clouds[i]); scatter(model, scatters[i]); ranks(model, bars[i]); });
  }
  by("word").addEventListener("change", () => choose(Number(by("word").value)));
  let waiting = false;  // a drag asks more often than nine plots are drawn
  by("layer").addEventListener("input", () => {
    if (!waiting) requestAnimationFrame(() => { waiting = false; move(); });
    waiting = true;
  });
  for (const id of ["plane", "across"]) by(id).addEventListener("change", move);
  document.querySelector(".controls").addEventListener("change", move);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", move);
  // An address that ends in #word=bank opens there
  const asked = words.indexOf(decodeURIComponent(/^#word=(.*)/.exec(location.hash)?.[1] ?? ""));
  if (projected[asked]) reveal(asked); else choose(word);
}
