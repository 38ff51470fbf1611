// The model browser: the server draws the list of sets, or what a search finds, and the set that the address names behind "#".
"use strict";
(() => {
  const { $, data, el, t } = site;
  const wanted = () => decodeURIComponent(location.hash.slice(1)).split("/");
  let listed = null; // the promise of the list that was asked for last

  /** The part of the page at `url` in its place, unless another one has been asked for meanwhile. */
  async function load(place, url, values) {
    const asked = place.dataset.asked = JSON.stringify([url, values, $("mine").checked]);
    let html = "", problem = "";
    try { html = await site.part(url, values, $("mine").checked, "GET"); } catch (failure) { problem = failure.message; }
    if (place.dataset.asked !== asked) return;
    place.innerHTML = html;
    if (problem) place.append(el("p", { class: "problem", role: "alert" }, problem));
  }

  const list = () => { listed = load($("tree"), data.sets, { q: $("search").value, name: wanted()[0] }); return listed; };

  async function show() {
    const [name, member] = wanted();
    await load($("entity"), data.set, { name });
    document.title = document.title.replace(/^.*? · /, `${name || t("model")} · `);
    const row = member && document.getElementById(`m-${member}`);
    if (row) { row.classList.add("marked"); row.scrollIntoView({ block: "center" }); }
    document.documentElement.dataset.model = "ready";
  }

  document.addEventListener("DOMContentLoaded", () => {
    $("search").addEventListener("input", list);
    $("search").addEventListener("keydown", async (event) => {
      if (!$("search").value.trim() || !["Enter", "ArrowDown"].includes(event.key)) return;
      event.preventDefault();
      await listed;
      const first = $("tree").querySelector(".hits a");
      if (first && event.key === "Enter") location.hash = first.hash;
      else if (first) first.focus();
    });
    $("mine").addEventListener("change", () => { list(); show(); });
    window.addEventListener("hashchange", async () => {
      if (!$("search").value.trim()) list();
      await show();
      const head = $("entity").querySelector("h2");
      if (head && !wanted()[1]) { head.focus({ preventScroll: true }); head.scrollIntoView({ block: "nearest" }); }
    });
    list();
    show();
    if (!location.hash && window.matchMedia("(min-width: 60rem)").matches) $("search").focus();
  });
})();
