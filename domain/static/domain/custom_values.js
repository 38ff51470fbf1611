// Values of a custom property that depend on another one: a select shows what the parent's value allows.
'use strict';
document.addEventListener('DOMContentLoaded', () => {
  const selects = [...document.querySelectorAll('select[data-parent-field]')];

  const narrow = (select) => {
    const parent = select.form.elements[select.dataset.parentField];
    const chosen = parent && parent.selectedOptions ? parent.selectedOptions[0]?.dataset.valueId : undefined;
    for (const option of select.options) {
      const allowed = !option.dataset.parentId || option.dataset.parentId === chosen;
      option.hidden = option.disabled = !allowed;
      if (!allowed && option.selected) {
        select.value = '';
        // What depends on this one follows.
        select.dispatchEvent(new Event('change', { bubbles: true }));
      }
    }
  };

  for (const select of selects) {
    narrow(select);
    select.form.elements[select.dataset.parentField]?.addEventListener('change', () => narrow(select));
  }
});
