// The model browser: sets by namespace, one set with all that belongs to it, references both ways, and one search.
"use strict";
(() => {
  const { $, t, el } = site;
  const HITS_SHOWN = 80;
  let model = null;
  let usedBy = new Map(); // set → [[set, member]]: who refers to it
  let index = []; // {text, label, detail, set, member}

  const link = (set, text = set) => el("a", { href: `#${set}` }, text);
  const namespace = (set) => set.repository.split(".").slice(0, -1).join(".");

  function prepare(found) {
    model = found;
    usedBy = new Map();
    index = [];
    const note = (label, detail, set, member = "") => index.push({ text: label.toLowerCase(), label, detail, set: set.name, member });
    for (const set of model.sets.values()) {
      note(set.name, t("set"), set);
      for (const old of set.oldNames) note(old, t("formerName", { name: set.name }), set);
      for (const attribute of set.attributes) {
        note(attribute.name, `${set.name} · ${attribute.type}`, set, attribute.name);
        for (const member of Object.keys(attribute.members || {})) note(member, `${set.name}/${attribute.name}`, set, attribute.name);
      }
      for (const reference of set.references) {
        note(reference.name, `${set.name} → ${reference.entitySet}`, set, reference.name);
        if (!usedBy.has(reference.entitySet)) usedBy.set(reference.entitySet, []);
        usedBy.get(reference.entitySet).push([set.name, reference.name, reference.isOwner]);
      }
      for (const child of set.collections) note(child.name, `${set.name} → ${child.entitySet} [ ]`, set, child.name);
      for (const custom of set.customProperties) note(custom.name, `${set.name} · ${custom.propertyType}`, set, custom.name);
      for (const operation of set.operations) note(operation, `${set.name} · ${t("operation")}`, set, operation);
    }
  }

  // --- the list on the side

  function tree() {
    const groups = new Map();
    for (const set of model.sets.values()) {
      const name = namespace(set);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(set);
    }
    const now = current();
    $("found").textContent = t("setsInAll", { count: site.number.format(model.sets.size), namespaces: site.number.format(groups.size) });
    $("tree").replaceChildren(...[...groups].map(([name, sets]) => el("details", { open: sets.some((set) => set.name === now) },
      el("summary", {}, name, " ", el("span", { class: "quiet" }, String(sets.length))),
      el("ul", { class: "plain" }, sets.map((set) => el("li", {}, el("a", { href: `#${set.name}`, "aria-current": set.name === now ? "true" : null }, set.repository.split(".").pop())))))));
  }

  function hits(wanted) {
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    const rank = (entry) => (entry.text === words[0] ? 0 : entry.text.startsWith(words[0]) ? 1 : 2) + (entry.member ? 0.5 : 0);
    const found = index.filter((entry) => words.every((word) => entry.text.includes(word) || entry.set.toLowerCase().includes(word)) && words.some((word) => entry.text.includes(word))).sort((a, b) => rank(a) - rank(b));
    $("found").textContent = t("hits", { count: site.number.format(found.length) });
    $("tree").replaceChildren(el("ul", { class: "plain hits" }, found.slice(0, HITS_SHOWN).map((entry) => el("li", {}, el("a", { href: `#${entry.set}${entry.member ? `/${entry.member}` : ""}` }, entry.label), el("span", { class: "quiet" }, ` ${entry.detail}`)))));
  }

  const list = () => { if ($("search").value.trim()) hits($("search").value); else tree(); };

  // --- one set

  const current = () => decodeURIComponent(location.hash.slice(1)).split("/")[0];

  function limits(attribute) {
    const parts = [];
    if (attribute.maxLength !== undefined) parts.push(t("maxLength", { most: attribute.maxLength }));
    if (attribute.precision !== undefined) parts.push(`${attribute.precision},${attribute.scale}`);
    if (attribute.measure) parts.push(t("measure", { path: attribute.measure }));
    return parts.join(" · ");
  }

  function flags(member) {
    return [member.required ? t("required") : "", member.readOnly ? t("readOnly") : "", member.nullable ? "" : t("notNull"), member.isDefault === false ? t("onRequest") : ""].filter(Boolean).map((text) => [el("span", { class: "flag" }, text), " "]);
  }

  function section(title, heads, rows, level = "h3") {
    if (!rows.length) return [];
    return [el(level, {}, title, " ", el("span", { class: "quiet" }, String(rows.length))), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, el("table", {}, el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, rows)))];
  }
  const row = (name, ...cells) => el("tr", { id: `m-${name}` }, el("th", { scope: "row" }, el("code", {}, name)), cells.map((cell) => el("td", {}, cell)));

  function members(attribute) {
    if (!attribute.members) return attribute.type.replace(/^Edm\./, "");
    return el("details", {}, el("summary", {}, attribute.type.replace(/^Erp\./, "")), el("ul", { class: "plain" }, Object.entries(attribute.members).map(([name, number]) => el("li", {}, el("code", {}, name), ` ${number}`))));
  }

  function operation(known) {
    const parameters = known.parameters.map((p) => el("li", {}, el("code", {}, p.name), ` ${p.type.replace(/^Edm\./, "")}`, p.optional ? [" ", el("span", { class: "flag" }, t("optional"))] : ""));
    return row(known.name, known.isFunction ? "GET" : "POST", parameters.length ? el("ul", { class: "plain" }, parameters) : "–", (known.returns || "–").replace(/^Edm\./, ""), known.description || "");
  }

  function events(set) {
    const box = el("details", { class: "panel" }, el("summary", {}, t("events")));
    const body = el("div", { class: "panel-body" });
    box.append(body);
    box.addEventListener("toggle", async () => {
      if (!box.open || body.childElementCount) return;
      body.replaceChildren(el("p", { class: "quiet" }, "…"));
      try {
        const told = await site.get(`GetRepositoryEvents(repositoryName='${set.repository}')`);
        body.replaceChildren(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("events") }, el("table", {}, el("tbody", {}, told.events.map((event) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, event.EventType)), el("td", {}, event.Layer), el("td", {}, event.Description, event.EventParameterDescription ? [" ", el("span", { class: "quiet" }, event.EventParameterDescription)] : "")))))));
      } catch (failure) { body.replaceChildren(site.el("p", { class: "problem" }, failure.message, failure.error && failure.error.signIn ? [" ", el("a", { href: site.logInUrl() }, t("signIn"))] : "")); }
    });
    return box;
  }

  function overview() {
    const unbound = model.operationDetails.filter((known) => !known.boundTo);
    $("entity").replaceChildren(el("p", {}, t("chooseSet")), ...section(t("unboundOperations"), [t("name"), t("method"), t("parameters"), t("returns"), t("description")], unbound.map(operation), "h2"));
  }

  function show() {
    const set = model.sets.get(current()) || [...model.sets.values()].find((known) => known.oldNames.includes(current()));
    document.title = document.title.replace(/^.*? · /, `${set ? set.name : t("model")} · `);
    if (!set) { overview(); return; }
    const derived = [...model.sets.values()].filter((known) => known.baseType === set.entityType);
    const base = set.baseType && model.byType.get(set.baseType);
    const facts = el("dl", {});
    const fact = (name, ...value) => facts.append(el("dt", {}, name), el("dd", {}, value.flat()));
    fact(t("repository"), el("code", {}, set.repository));
    fact(t("entityType"), el("code", {}, set.entityType));
    if (base) fact(t("baseType"), link(base.name));
    if (derived.length) fact(t("derived"), derived.flatMap((known, i) => [i ? ", " : "", link(known.name)]));
    if (set.oldNames.length) fact(t("formerNames"), set.oldNames.flatMap((old) => [el("code", {}, old), " "]));
    fact(t("access"), set.access, " ", [set.isAbstract ? t("abstract") : "", set.isDocument ? t("document") : "", set.isAggregateRoot ? t("root") : t("part")].filter(Boolean).map((text) => [el("span", { class: "flag" }, text), " "]).flat());
    if (set.codeMember) fact(t("codeMember"), el("code", {}, set.codeMember));
    if (set.nameMember) fact(t("nameMember"), el("code", {}, set.nameMember));
    if (set.displayFormat) fact(t("displayText"), el("code", {}, set.displayFormat));
    const used = (usedBy.get(set.name) || []).map(([name, member, owner]) => el("tr", {}, el("th", { scope: "row" }, link(name)), el("td", {}, el("a", { href: `#${name}/${member}` }, el("code", {}, member))), el("td", {}, owner ? el("span", { class: "flag" }, t("owner")) : "")));
    $("entity").replaceChildren(...[
      el("h2", { tabindex: "-1" }, set.name),
      el("p", { class: "tools" }, el("a", { class: "button secondary", href: `${site.data.query}#GET%20${encodeURIComponent(`${set.name}?$top=10`)}` }, t("openQuery")), " ", el("a", { class: "button secondary", href: `${site.data.query.replace(/query$/, "builder")}#${set.name}` }, t("openBuilder"))),
      facts,
      section(t("attributes"), [t("name"), t("type"), t("limits"), t("notes")], set.attributes.map((a) => row(a.name, members(a), limits(a), flags(a)))),
      section(t("references"), [t("name"), t("set"), t("notes")], set.references.map((r) => row(r.name, link(r.entitySet), [flags(r), r.isOwner ? el("span", { class: "flag" }, t("owner")) : ""].flat(2)))),
      section(t("collections"), [t("name"), t("set"), t("backReference")], set.collections.map((c) => row(c.name, link(c.entitySet), el("code", {}, c.backReference || "")))),
      section(t("customProperties"), [t("name"), t("type"), t("limits")], set.customProperties.map((c) => row(c.name, c.propertyType, c.limitToAllowedValues ? t("limited") : ""))),
      section(t("operations"), [t("name"), t("method"), t("parameters"), t("returns"), t("description")], site.operationsOf(model, set).map(operation)),
      events(set),
      section(t("usedBy"), [t("set"), t("reference"), t("notes")], used),
    ].flat());
    const [, member] = decodeURIComponent(location.hash.slice(1)).split("/");
    const target = member && document.getElementById(`m-${member}`);
    if (target) { target.classList.add("marked"); target.scrollIntoView({ block: "center" }); }
    for (const anchor of document.querySelectorAll("#tree a")) anchor.toggleAttribute("aria-current", anchor.hash === `#${set.name}`);
  }

  document.addEventListener("DOMContentLoaded", async () => {
    prepare(await site.model());
    $("search").addEventListener("input", list);
    $("search").addEventListener("keydown", (event) => {
      const first = $("tree").querySelector(".hits a");
      if (first && event.key === "Enter") { event.preventDefault(); location.hash = first.hash; }
      if (first && event.key === "ArrowDown") { event.preventDefault(); first.focus(); }
    });
    $("mine").addEventListener("change", async () => {
      try { prepare($("mine").checked ? await site.ownModel() : await site.model()); list(); show(); }
      catch (failure) { $("mine").checked = false; site.announce(failure.message, true); }
    });
    window.addEventListener("hashchange", () => { show(); if (!$("search").value.trim()) tree(); const head = $("entity").querySelector("h2"); if (head && !location.hash.includes("/")) { head.focus({ preventScroll: true }); head.scrollIntoView({ block: "nearest" }); } });
    list();
    show();
    document.documentElement.dataset.model = "ready";
    if (!location.hash && window.matchMedia("(min-width: 60rem)").matches) $("search").focus();
  });
})();
