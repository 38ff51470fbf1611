// The query builder: a form that the server draws again after each change, with the address that it stands for.
"use strict";
(() => {
  const { $, data } = site;
  const form = () => $("builder");
  const written = () => new URLSearchParams(new FormData(form())).toString();
  let own = false; // whether a session is open anyway: then custom properties are offered, too
  let pressed = []; // what buttons of the form do, until it is drawn
  let turn = 0, drawn = null; // `drawn`: the promise of the form that was asked for last
  let released = null; // a promise while a button is held down: what is drawn meanwhile would take it away before its click

  function draw(action = [], sent = null) {
    pressed = pressed.concat(action);
    drawn = redraw(++turn, sent);
    return drawn;
  }

  async function redraw(mine, sent) {
    const before = written();
    const asked = new URLSearchParams(sent || before);
    for (const action of pressed) asked.append("do", action);
    let html;
    try { html = await site.part(data.builder, asked, own); } catch (failure) { site.announce(failure.message, true); return; }
    await released;
    if (mine !== turn) { await drawn; return; }
    if (written() !== before) { await draw(); return; } // something was written meanwhile
    const { id, selectionStart } = document.activeElement;
    const [action, rows] = (pressed.at(-1) || "").split("-");
    pressed = [];
    $("parts").innerHTML = html;
    if (action === "add") $(rows === "order" ? "orders" : "filters").lastElementChild.querySelector("select").focus();
    else if (action === "remove") $(rows === "order" ? "order-add" : "filter-add").focus();
    else if (id && $(id) !== document.activeElement) $(id)?.focus();
    if (id === "column-search") $(id).setSelectionRange(selectionStart, selectionStart);
    site.tab.set("builder", written());
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
    form().addEventListener("submit", async (event) => {
      event.preventDefault();
      await drawn;
      if ($("address")) run(site.encoded($("address").dataset.path));
      else $("set").focus();
    });
    form().addEventListener("change", () => draw());
    form().addEventListener("pointerdown", () => {
      released = new Promise((done) => { for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => setTimeout(done), { once: true }); });
    });
    form().addEventListener("input", ({ target }) => {
      if (target.id === "column-search" || target.id === "set" && [...$("sets").options].some(({ value }) => value === target.value.trim())) draw();
    });
    form().addEventListener("click", async ({ target }) => {
      if (target.matches("button[value]")) draw(target.value);
      else if (target.id === "copy-url") { await drawn; if ($("address")) site.copy(data.publicRoot + site.encoded($("address").dataset.path)); }
    });
    // "?GET+~/Crm_Sales_Customers?…" is a link of the reference platform.
    const linked = /^\?GET(?:\+|%20)(?:~|%7E)?\/?(\w+)/i.exec(location.search);
    const asked = decodeURIComponent(location.hash.slice(1)) || (linked ? linked[1] : "");
    const kept = asked ? new URLSearchParams({ set: asked }).toString() : site.tab.get("builder", "");
    $("set").value = new URLSearchParams(kept).get("set") || "";
    await draw([], kept);
    document.documentElement.dataset.model = "ready";
    document.addEventListener("site:called", () => { own = true; draw(); }, { once: true });
  });
})();
