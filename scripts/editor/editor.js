// Code editors of the admin (spec 04, 4.4): every <textarea data-code> becomes one, and stays the form's field.
//
// The editor lives in a shadow root: there CodeMirror brings its styles as constructed sheets, which a policy without
// inline styles allows. Colours are custom properties of the page (scripts.css), which reach into the shadow root, so
// light and dark need nothing here.
import { autocompletion, closeBrackets, closeBracketsKeymap, completeAnyWord, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const CHECK_AFTER_MS = 600;
const languages = { javascript, json };

const highlighting = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], color: "var(--code-function)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-property)" },
  { tag: tags.invalid, color: "var(--error-fg)" },
]);

const theme = EditorView.theme({
  "&": { color: "var(--body-fg)", backgroundColor: "var(--body-bg)", fontSize: "0.8125rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-family-monospace)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--body-fg)" },
  ".cm-cursor": { borderLeftColor: "var(--body-fg)" },
  ".cm-gutters": { backgroundColor: "var(--darkened-bg)", color: "var(--body-quiet-color)", borderRight: "1px solid var(--hairline-color)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--code-line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--code-selection)" },
  ".cm-selectionMatch, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--code-match)" },
  ".cm-panels, .cm-tooltip": { backgroundColor: "var(--darkened-bg)", color: "var(--body-fg)", borderColor: "var(--border-color)" },
  ".cm-textfield, .cm-button": { backgroundColor: "var(--body-bg)", backgroundImage: "none", color: "var(--body-fg)", borderColor: "var(--border-color)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--code-selection)", color: "var(--body-fg)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--error-fg)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--darkened-bg)", color: "var(--body-quiet-color)", borderColor: "var(--border-color)" },
});

function enhance(textarea) {
  const host = document.createElement("div");
  host.className = "code-editor";
  host.dataset.for = textarea.name;
  const root = host.attachShadow({ mode: "open" });
  textarea.after(host);
  textarea.classList.add("code-hidden");
  const label = document.querySelector(`label[for="${textarea.id}"]`);
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: textarea.value,
      extensions: [
        lineNumbers(), foldGutter(), lintGutter(), highlightSpecialChars(), history(), drawSelection(), indentOnInput(),
        bracketMatching(), closeBrackets(), autocompletion({ override: [completeAnyWord] }), highlightActiveLine(),
        highlightActiveLineGutter(), highlightSelectionMatches(), indentUnit.of("  "), EditorView.lineWrapping,
        // Tab indents, so the way out by keyboard is Escape, then Tab; CodeMirror tells screen readers nothing of it.
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap,
          ...completionKeymap, ...lintKeymap, indentWithTab]),
        (languages[textarea.dataset.code] || javascript)(),
        syntaxHighlighting(highlighting), theme,
        EditorState.readOnly.of(textarea.readOnly || textarea.disabled),
        EditorView.contentAttributes.of({
          "aria-label": label ? label.textContent.replace(/:\s*$/, "") : textarea.name,
          "aria-multiline": "true",
        }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          textarea.value = update.state.doc.toString();
          textarea.dispatchEvent(new Event("input", { bubbles: true }));
        }),
      ],
    }),
  });
  if (label) label.addEventListener("click", () => view.focus());
  textarea.addEventListener("focus", () => view.focus());
  return view;
}

// {line, column, message}, counted from 1; either may be missing.
function show(view, problems) {
  const { doc } = view.state;
  const found = problems.map(({ line, column, message }) => {
    const at = doc.line(Math.min(Math.max(line || 1, 1), doc.lines));
    const from = Math.min(at.from + Math.max((column || 1) - 1, 0), at.to);
    const word = view.state.wordAt(from);
    return { from, to: word ? word.to : Math.min(from + 1, at.to), severity: "error", message };
  });
  view.dispatch(setDiagnostics(view.state, found));
}

const views = new Map(); // name of the field → view
for (const textarea of document.querySelectorAll("textarea[data-code]")) views.set(textarea.name, enhance(textarea));

// Other scripts of the page, and tests, speak to the editors by events: {field, problems}, {field, text} and
// {field, line, column}.
document.addEventListener("code:problems", ({ detail }) => {
  const view = views.get(detail.field);
  if (view) show(view, detail.problems);
});
document.addEventListener("code:set", ({ detail }) => {
  const view = views.get(detail.field);
  if (!view || view.state.doc.toString() === detail.text) return;
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: detail.text } });
});
document.addEventListener("code:goto", ({ detail }) => {
  const view = views.get(detail.field);
  if (!view) return;
  const at = view.state.doc.line(Math.min(Math.max(detail.line, 1), view.state.doc.lines));
  view.dispatch({ selection: { anchor: Math.min(at.from + Math.max((detail.column || 1) - 1, 0), at.to) }, scrollIntoView: true });
  view.focus();
});

// What the server says of the texts, a moment after the last key.
const checked = document.querySelector("textarea[data-check]");
if (checked) {
  const { form } = checked;
  let timer = 0, latest = 0;
  const check = async () => {
    const mine = ++latest;
    const response = await fetch(checked.dataset.check, { method: "POST", body: new FormData(form), credentials: "same-origin" });
    if (!response.ok || mine !== latest) return;
    const { problems } = await response.json();
    for (const [name, view] of views) show(view, problems.filter((problem) => problem.field === name));
    document.documentElement.dataset.checked = String(mine);
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => check().catch(() => {}), CHECK_AFTER_MS); });
  check().catch(() => {});
}
