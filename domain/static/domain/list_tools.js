// The tools above a list: chosen columns move up and down.
'use strict';
(() => {
  const tools = document.querySelector('.list-tools');
  if (!tools) return;

  tools.addEventListener('click', (event) => {
    const button = event.target.closest('[data-move]');
    if (!button) return;
    const item = button.closest('li');
    const other = button.dataset.move === '-1' ? item.previousElementSibling : item.nextElementSibling;
    if (!other) return;
    if (button.dataset.move === '-1') other.before(item);
    else other.after(item);
    button.focus();
  });
})();
