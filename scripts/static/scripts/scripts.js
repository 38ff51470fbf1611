// The Run panel of a script (spec 04, 4.4). Without this file its form leads to a page of its own.
"use strict";
const panel = document.getElementById("script-run");
if (panel) {
  const form = panel.querySelector("form");
  const result = document.getElementById("script-result");
  const button = form.querySelector("button");
  const source = document.querySelector("textarea[name=script_text]");
  const show = (field, problems) => document.dispatchEvent(new CustomEvent("code:problems", { detail: { field, problems } }));

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = new FormData(form);
    // What runs is what one sees: the text in the editor, saved or not.
    if (source) body.append("script_text", source.value);
    button.disabled = true;
    result.setAttribute("aria-busy", "true");
    try {
      const response = await fetch(form.action, { method: "POST", body, headers: { "X-Fragment": "1" }, credentials: "same-origin" });
      if (!response.ok) throw new Error(response.status + " " + response.statusText);
      result.innerHTML = await response.text();
      const runs = result.querySelector("template");
      if (runs) document.getElementById("script-runs").replaceWith(runs.content);
      const place = result.querySelector("[data-line]");
      show("script_text", place ? [{ line: Number(place.dataset.line), column: Number(place.dataset.column || 1), message: place.dataset.message }] : []);
      for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
      for (const problem of result.querySelectorAll("[data-parameter]")) {
        const input = form.elements["arg:" + problem.dataset.parameter];
        if (input && input.setAttribute) input.setAttribute("aria-invalid", "true");
      }
    } catch (error) {
      result.textContent = String(error.message || error);
    } finally {
      button.disabled = false;
      result.removeAttribute("aria-busy");
    }
  });

  result.addEventListener("click", (event) => {
    const place = event.target.closest("[data-line]");
    if (!place || !source) return;
    event.preventDefault();
    document.dispatchEvent(new CustomEvent("code:goto", {
      detail: { field: "script_text", line: Number(place.dataset.line), column: Number(place.dataset.column || 1) },
    }));
  });
}
