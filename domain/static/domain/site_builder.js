// The query builder: a form that the server draws again after each change, with the address that it stands for.
"use strict";
(() => {
  const { $, data } = site;
  const form = () => $("builder");
  let own = false; // whether a session is open anyway: then custom properties are offered, too

  function shown(actions, failure) {
    if (failure) { site.announce(failure.message, true); return; }
    const [action, rows] = (actions.at(-1) || "").split("-");
    if (action === "add") $(rows === "order" ? "orders" : "filters").lastElementChild.querySelector("select").focus();
    else if (action === "remove") $(rows === "order" ? "order-add" : "filter-add").focus();
    site.tab.set("builder", new URLSearchParams(new FormData(form())).toString());
  }

  async function run(path) {
    const asked = { method: "GET", path };
    $("answer").setAttribute("aria-busy", "true");
    $("run").disabled = true;
    try { site.answer.show($("answer"), await site.send(asked), asked, run, "table"); }
    catch (failure) { site.answer.showFailure($("answer"), failure, asked); }
    finally { $("run").disabled = false; }
  }

  document.addEventListener("DOMContentLoaded", async () => {
    const { draw, drawn } = site.drawnForm(form(), $("parts"), (fields) => site.part(data.builder, fields, own), shown);
    form().addEventListener("submit", async (event) => {
      event.preventDefault();
      await drawn();
      if ($("address")) run(site.encoded($("address").dataset.path));
      else $("set").focus();
    });
    form().addEventListener("change", () => draw());
    form().addEventListener("input", ({ target }) => {
      if (target.id === "column-search" || target.id === "set" && [...$("sets").options].some(({ value }) => value === target.value.trim())) draw();
    });
    form().addEventListener("click", async ({ target }) => {
      if (target.matches("button[value]")) draw(target.value);
      else if (target.id === "copy-url") { await drawn(); if ($("address")) site.copy(data.publicRoot + site.encoded($("address").dataset.path)); }
    });
    // "?GET+~/Crm_Sales_Customers?…" is a link of the reference platform.
    const linked = /^\?GET(?:\+|%20)(?:~|%7E)?\/?(\w+)/i.exec(location.search);
    const asked = decodeURIComponent(location.hash.slice(1)) || (linked ? linked[1] : "");
    const kept = new URLSearchParams(asked ? { set: asked } : site.tab.get("builder", ""));
    $("set").value = kept.get("set") || "";
    await draw([], kept);
    document.documentElement.dataset.model = "ready";
    document.addEventListener("site:called", () => { own = true; draw(); }, { once: true });
  });
})();
