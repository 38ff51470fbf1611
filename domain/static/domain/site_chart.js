// The Chart tab of an answer: what to draw is chosen from the columns of its rows, and kept with a saved query. The figures are
// added up by the server, as for a tile of the home page (domain/api_site/query_charts.py).
"use strict";
site.chart = (() => {
  const { el, t } = site;
  const { text, number } = site.answer;
  const SERIES_MOST = 5;
  const KINDS = { bar: t("chartBar"), line: t("chartLine"), pie: t("chartPie") };
  const DATE = /^\d{4}(-\d\d){0,2}($|T)/;
  let drawn = null; // {path, choice} of the open tab

  /** {names, numbers}: the columns, and those of them that have figures. */
  function columns(rows) {
    const names = [...new Set(rows.flatMap(Object.keys))].filter((name) => !name.includes("@"));
    return { names, numbers: names.filter((name) => rows.some((row) => number(row[name]) !== null)) };
  }

  const fits = (rows) => { const { names, numbers } = columns(rows); return numbers.length > 0 && names.length > 1; };

  /** Texts are labels and dates make lines; where all are figures, the first is the label. */
  function usual(rows) {
    const { names, numbers } = columns(rows);
    const texts = names.filter((name) => !numbers.includes(name));
    const label = texts[0] || names[0];
    const isTime = rows.every((row) => row[label] == null || DATE.test(text(row[label])));
    return { kind: isTime ? "line" : "bar", label, split: texts.length === 2 ? texts[1] : "", values: [numbers.find((name) => name !== label)] };
  }

  /** The tab: choices, and the chart below them. `path` is the typed one, which a saved query may have a chart for. */
  function show(host, rows, path) {
    const { names, numbers } = columns(rows);
    const known = drawn && drawn.path === path ? drawn.choice : site.saved.chart(path);
    const choice = known && [known.label, ...known.values].every((name) => names.includes(name)) ? { ...known } : usual(rows);
    drawn = { path, choice };
    const options = (entries, chosen) => entries.map(([value, name]) => el("option", { value, selected: value === chosen }, name));
    const select = (name, label, entries) => el("label", { class: "inline" }, label, " ", el("select", { name }, options(entries, choice[name])));
    const columnsOf = (list) => list.map((name) => [name, name]);
    const figure = el("div");
    let turn = 0;
    const form = el("form", { class: "tools", id: "chart-form" },
      select("kind", t("chartKind"), Object.entries(KINDS)), select("label", t("chartLabel"), columnsOf(names)), select("split", t("chartSplit"), [["", "–"], ...columnsOf(names)]),
      el("fieldset", { class: "beside" }, el("legend", { class: "unseen" }, t("chartValues")), numbers.map((name) => el("label", { class: "choice" }, el("input", { type: "checkbox", name: "values", value: name, checked: choice.values.includes(name) }), name))));
    async function draw() {
      const mine = ++turn;
      const shown = [choice.label, choice.split, ...choice.values];
      const picked = rows.map((row) => Object.fromEntries(shown.filter((name) => name in row).map((name) => [name, row[name]])));
      try {
        const html = await site.part(site.data.chart, { rows: JSON.stringify(picked), chart: JSON.stringify(choice) });
        if (mine !== turn) return; // another choice has been made
        figure.innerHTML = html;
        charts.show(figure);
      } catch (failure) { figure.replaceChildren(el("p", { class: "problem", role: "alert" }, failure.message)); }
    }
    form.addEventListener("change", () => {
      const chosen = new FormData(form);
      const values = chosen.getAll("values").slice(0, SERIES_MOST);
      Object.assign(choice, { kind: chosen.get("kind"), label: chosen.get("label"), split: chosen.get("split") === chosen.get("label") ? "" : chosen.get("split"), values: values.length ? values : choice.values });
      draw();
    });
    host.replaceChildren(form, figure);
    draw();
  }

  /** The choice of the open Chart tab, where it is of this path; else null. */
  const chosen = (path) => (site.$("chart-form") && drawn && drawn.path === path ? drawn.choice : null);

  return { KINDS, chosen, fits, show };
})();
