// What Django's pages leave to be desired: names for fields that have none.
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

  function name() {
    nameChoosers();
    nameCells();
    nameMoments();
  }

  name();
  // Choosers are made when jQuery is ready, in this order; those of new rows when the row is.
  window.django?.jQuery?.(name);
  document.addEventListener('formset:added', () => setTimeout(name));
})();
