// The API explorer: Swagger UI over the OpenAPI document of one namespace at a time; its requests carry the site's token.
"use strict";
(() => {
  const { $, data, el } = site;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const colours = () => document.documentElement.classList.toggle("dark-mode", dark.matches);

  /** What Swagger UI leaves out for those who work by keyboard or listen: scrolled text has the focus, choices their names. */
  function accessible() {
    for (const text of $("explorer").querySelectorAll(".microlight:not([tabindex])")) text.tabIndex = 0;
    for (const choice of $("explorer").querySelectorAll("select:not([aria-label], [id])")) {
      const row = choice.closest("[data-param-name]");
      if (row) choice.setAttribute("aria-label", row.dataset.paramName);
    }
  }

  async function authorized(request) {
    try { request.headers.Authorization = `Bearer ${await site.token()}`; }
    catch (refused) { site.announce(refused.message, true); throw refused; }
    request.credentials = "omit";
    return request;
  }

  async function show() {
    const links = [...$("namespaces").querySelectorAll("a")];
    const namespace = decodeURIComponent(location.hash.slice(1)) || decodeURIComponent(links[0].hash.slice(1));
    for (const link of links) { if (decodeURIComponent(link.hash.slice(1)) === namespace) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current"); }
    const response = await fetch(`${data.openapi}?namespace=${encodeURIComponent(namespace)}`, { credentials: "omit" });
    const spec = await response.json();
    if (!response.ok) { $("explorer").replaceChildren(el("p", { class: "problem", role: "alert" }, spec.error.message)); return; }
    // Behind a path prefix the service root is another one; and people need no lock to open, they have signed in.
    spec.servers = [{ url: data.root.replace(/\/$/, "") }];
    delete spec.security;
    delete spec.components.securitySchemes;
    // The request is shown as it is before the token is in it.
    SwaggerUIBundle({
      spec, domNode: $("explorer"), requestInterceptor: authorized, showMutatedRequest: false, validatorUrl: null, docExpansion: "none", tryItOutEnabled: true, defaultModelsExpandDepth: -1,
      onComplete: () => { document.documentElement.dataset.model = namespace; },
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    colours();
    dark.addEventListener("change", colours);
    window.addEventListener("hashchange", show);
    new MutationObserver(accessible).observe($("explorer"), { childList: true, subtree: true });
    show();
  });
})();
