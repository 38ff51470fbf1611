// Preview beside Save: shows in a dialog what saving would do. Without this script, and where the form is not valid, the answer is a page.
'use strict';
document.addEventListener('click', async (event) => {
  const button = event.target.closest('button[name=_dry_run]');
  if (!button?.form || button.dataset.asPage) return;
  event.preventDefault();
  const body = new FormData(button.form);
  body.append(button.name, '1');
  button.disabled = true;
  try {
    const answer = await fetch(button.form.action || window.location.href, {method: 'POST', body});
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const shown = page.querySelector('#save-preview');
    if (!shown) {
      button.dataset.asPage = '1'; // its errors are shown at the fields
      button.disabled = false;
      button.form.requestSubmit(button);
      return;
    }
    const dialog = document.createElement('dialog');
    dialog.className = 'save-preview-dialog';
    dialog.setAttribute('aria-labelledby', 'save-preview-heading');
    const close = document.createElement('form');
    close.method = 'dialog';
    const closing = document.createElement('button');
    closing.className = 'quiet-button';
    closing.textContent = shown.dataset.close;
    close.append(closing);
    dialog.append(close, shown);
    dialog.addEventListener('close', () => { dialog.remove(); button.focus(); });
    document.body.append(dialog);
    dialog.showModal();
  } finally {
    button.disabled = false;
  }
});
