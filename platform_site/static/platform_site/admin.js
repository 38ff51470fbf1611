// What Django's pages leave to be desired: names for fields that have none, menus that close, and buttons that copy.
'use strict';
(() => {
  /** The choosers of references say which field they are: their own names are those of their values. */
  function nameChoosers() {
    for (const chooser of document.querySelectorAll('.select2-selection[role=combobox]')) {
      const select = chooser.closest('.select2')?.previousElementSibling;
      const label = select?.id && document.querySelector(`label[for="${CSS.escape(select.id)}"]`);
      const value = chooser.querySelector('[id$=-container]');
      if (!label || !value) continue;
      label.id ||= `${select.id}_label`;
      value.setAttribute('aria-labelledby', label.id);
      chooser.setAttribute('aria-labelledby', `${label.id} ${value.id}`);
    }
  }

  /** A field in a table is named by its column. */
  function nameCells() {
    for (const cell of document.querySelectorAll('.tabular td, #result_list td')) {
      const heading = cell.closest('table').tHead?.rows[0]?.cells[cell.cellIndex];
      if (!heading) continue;
      for (const field of cell.querySelectorAll('input:not([type=hidden]), select, textarea')) {
        if (!field.labels?.length && !field.hasAttribute('aria-label')) field.setAttribute('aria-label', heading.textContent.trim());
      }
    }
  }

  /** A moment is two fields with one label. */
  function nameMoments() {
    for (const field of document.querySelectorAll('.datetime input')) {
      const title = field.closest('.field-line')?.querySelector('label, legend')?.textContent ?? '';
      const part = field.previousSibling?.textContent ?? '';
      if (!field.labels?.length) field.setAttribute('aria-label', `${title.trim()} ${part.trim()}`.replaceAll(':', '').trim());
    }
  }

  /** While an administrator sees the admin as another user, nothing can be saved (identity.view_as). */
  function disableSaving() {
    const root = document.querySelector('.view-as')?.dataset.root;
    for (const button of root ? document.querySelectorAll('button, [type=submit]') : []) {
      if (button.form?.method === 'post' && new URL(button.form.action).pathname.startsWith(root)) button.disabled = true;
    }
  }

  function name() {
    nameChoosers();
    nameCells();
    nameMoments();
  }

  /** A button copies the text before it; without scripts it would do nothing, and is hidden. */
  function offerCopies() {
    for (const button of document.querySelectorAll('button.copy')) {
      const { textContent, ariaLabel } = button;
      button.hidden = false;
      button.addEventListener('click', async () => {
        getSelection().selectAllChildren(button.previousElementSibling);
        // Browsers give scripts the clipboard over https and on this computer only; elsewhere the text stays selected.
        await navigator.clipboard?.writeText(button.previousElementSibling.textContent);
        if (!navigator.clipboard) return;
        button.textContent = button.ariaLabel = button.dataset.copied;
        setTimeout(() => Object.assign(button, { textContent, ariaLabel }), 3000);
      });
    }
  }

  /** Menus are details with a name: Escape and a click elsewhere close them. */
  function closeMenus() {
    document.addEventListener('keydown', (event) => {
      const open = event.key === 'Escape' && event.target.closest('details[name][open]');
      if (!open) return;
      open.open = false;
      open.querySelector('summary').focus();
    });
    document.addEventListener('click', (event) => {
      for (const open of document.querySelectorAll('details[name][open]')) open.open = open.contains(event.target);
    });
  }

  closeMenus();
  offerCopies();
  disableSaving();
  name();
  // Choosers are made when jQuery is ready, in this order; those of new rows when the row is.
  window.django?.jQuery?.(name);
  document.addEventListener('formset:added', () => setTimeout(name));
})();
