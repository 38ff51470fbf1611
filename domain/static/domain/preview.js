// Amounts of a form and its rows as the platform calculates them, before anything is saved.
'use strict';
(() => {
  const form = document.querySelector('#content-main form[id$=_form]');
  if (!form?.querySelector('[name=_save], .formset') || !document.querySelector('[data-preview]')) return;
  let asked = 0;
  let timer;

  async function preview() {
    const turn = ++asked;
    const body = new FormData(form);
    body.append('_preview', '1');
    const answer = await fetch(window.location.href, {method: 'POST', body, headers: {Accept: 'application/json'}});
    if (!answer.ok || turn !== asked) return;
    for (const [name, text] of Object.entries(await answer.json())) {
      const shown = document.querySelector(`[data-preview="${CSS.escape(name)}"]`);
      if (shown) shown.textContent = text;
    }
  }

  // jQuery hears the choosers, too.
  window.django.jQuery(form).on('change', () => {
    clearTimeout(timer);
    timer = setTimeout(preview, 200);
  });
})();
