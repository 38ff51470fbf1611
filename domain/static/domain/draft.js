// A section of a form that shows what follows from what is written: htmx sends it and puts the server's answer in place; this keeps what the person is doing.
'use strict';
document.addEventListener('DOMContentLoaded', () => {
  const section = () => document.querySelector('[data-draft]');
  if (!section()) return;
  const written = () => new URLSearchParams(new FormData(section().closest('form'))).toString();
  const isOurs = (event) => event.detail.target?.matches('[data-draft]');
  let sent, open, chooser;

  // Letters typed into a drop-down belong together until a second has passed; a new one in its place would begin with the middle of a word.
  let lettersUntil = 0;
  const isBeingTyped = () => document.activeElement.matches('[data-draft] select') && Date.now() < lettersUntil;
  document.addEventListener('keydown', (event) => {
    if (event.key.length === 1 && event.target.matches('[data-draft] select')) lettersUntil = Date.now() + 1000;
  });

  // Choosers of entities tell only jQuery.
  window.django.jQuery(document).on('select2:select select2:clear', '[data-draft] select', (event) => {
    event.target.dispatchEvent(new Event('change', {bubbles: true}));
  });

  // Enter in these searches; elsewhere it saves.
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !event.target.matches('[data-enter]')) return;
    event.preventDefault();
    event.target.dispatchEvent(new Event('change', {bubbles: true}));
  });

  document.addEventListener('htmx:beforeRequest', (event) => {
    if (isOurs(event)) sent = written();
  });

  document.addEventListener('htmx:beforeSwap', (event) => {
    if (!isOurs(event)) return;
    const {elt} = event.detail.requestConfig;
    if (!event.detail.xhr.responseText.includes('data-draft')) {
      window.location.reload(); // signed out, or no longer permitted: the page says so
    } else if (written() !== sent || isBeingTyped()) {
      event.detail.shouldSwap = false; // something is or was written meanwhile
      window.htmx.trigger(elt, elt === section() ? 'change' : 'click');
    } else {
      open = [...section().querySelectorAll('details[open]')].map((each) => each.id);
      chooser = document.activeElement.closest('.select2')?.previousElementSibling?.id;
    }
  });

  document.addEventListener('htmx:afterSettle', (event) => {
    if (!isOurs(event)) return;
    for (const id of open) document.getElementById(id)?.setAttribute('open', '');
    // Django makes choosers of the new fields, admin.js names them.
    section().dispatchEvent(new CustomEvent('formset:added', {bubbles: true, detail: {formsetName: 'draft'}}));
    section().querySelector('[data-begin]')?.focus();
    if (chooser) document.querySelector(`#${CSS.escape(chooser)} + .select2 [role=combobox]`)?.focus();
  });
});
