// Saved queries of the query tool: one's own, and those that others share. They are kept by the service.
"use strict";
site.saved = (() => {
  const { $, t, el } = site;
  let queries = [];

  async function show() {
    queries = await (await site.ask("GET", site.data.queries)).json();
    $("saved").replaceChildren(...queries.map(entry));
    if (!queries.length) $("saved").append(el("li", { class: "quiet" }, t("historyEmpty")));
  }

  function entry({ id, name, path, isShared, owner, chart, onHome }) {
    const own = owner === site.data.login;
    return el("li", { class: "beside" },
      el("a", { href: `#GET%20${encodeURIComponent(path)}`, title: path }, name),
      chart && el("span", { class: "flag" }, site.chart.KINDS[chart.kind]),
      own ? isShared && el("span", { class: "flag" }, t("shared")) : el("span", { class: "flag" }, owner),
      site.data.home && el("button", { type: "button", class: "secondary small", id: `home-${id}`, "aria-pressed": String(onHome), "aria-label": t("onHomeName", { name }), onclick: () => pin(id, !onHome) }, t("onHome")),
      own && el("button", { type: "button", class: "secondary small", "aria-label": t("deleteName", { name }), onclick: () => remove(id) }, "×"));
  }

  /** Whether the service did it; what it refuses is told. */
  async function done(response) {
    if (!response.ok) site.announce((await response.json()).error.message, true);
    return response.ok;
  }

  async function pin(id, onHome) {
    if (!await done(await site.ask("PATCH", `${site.data.queries}/${id}`, { onHome }))) return;
    await show();
    $(`home-${id}`).focus();
    site.announce(onHome ? t("pinned") : t("unpinned"), true);
  }

  async function remove(id) {
    await site.ask("DELETE", `${site.data.queries}/${id}`);
    await show();
    $("save-name").focus();
  }

  async function save(event) {
    event.preventDefault();
    const path = $("path").value;
    if ($("method").value !== "GET" || !path.trim()) { site.announce(t("savesGet"), true); return; }
    if (!await done(await site.ask("POST", site.data.queries, { name: $("save-name").value, path, isShared: $("save-shared").checked, chart: site.chart.chosen(path) }))) return;
    $("save").reset();
    await show();
    site.announce(t("saved"), true);
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (!$("save")) return;
    $("save").addEventListener("submit", save);
    show();
  });

  /** The chart that is saved for a path; null without one. */
  return { chart: (path) => (queries.find((query) => query.path === path && query.chart) || { chart: null }).chart };
})();
