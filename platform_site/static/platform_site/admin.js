// What Django's pages leave to be desired: names for fields that have none, and how much a folded collection holds.
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
      const title = field.closest('.fieldBox, .form-row')?.querySelector('label, legend')?.textContent ?? '';
      const part = field.previousSibling?.textContent ?? '';
      if (!field.labels?.length) field.setAttribute('aria-label', `${title.trim()} ${part.trim()}`.replaceAll(':', '').trim());
    }
  }

  /** How many rows a collection has stands beside its title. */
  function countRows() {
    for (const group of document.querySelectorAll('.inline-group')) {
      const heading = group.querySelector('.inline-heading');
      const stored = Number(group.querySelector('[name$=-INITIAL_FORMS]')?.value ?? 0);
      if (!heading || !stored) continue;
      const count = document.createElement('span');
      count.className = 'inline-count';
      count.textContent = stored;
      heading.append(count);
    }
  }

  function name() {
    nameChoosers();
    nameCells();
    nameMoments();
  }

  /** The focus is on the first field and not on the button above it, unless a field of the page has asked for it. */
  function focusFirstField() {
    if (!document.activeElement?.closest('.submit-row')) return;
    const fields = document.querySelectorAll('#content form .form-row :is(input:not([type=hidden]), select, textarea)');
    [...fields].find((field) => !field.disabled && field.offsetParent)?.focus();
  }

  countRows();
  name();
  // Choosers are made when jQuery is ready, in this order; those of new rows when the row is.
  window.django?.jQuery?.(name);
  window.addEventListener('load', focusFirstField);
  document.addEventListener('formset:added', () => setTimeout(name));
})();
