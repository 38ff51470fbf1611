// A card that is dragged to another column presses the button for that state in its own menu.
'use strict';
(() => {
  const board = document.querySelector('.board');
  let card = null;

  const buttonFor = (target) => {
    const state = target.closest('.board-column')?.dataset.state;
    return card && state ? [...card.querySelectorAll('[name=state]')].find((button) => button.value === state) : null;
  };
  const unmark = () => board.querySelectorAll('.is-target').forEach((column) => column.classList.remove('is-target'));

  board.addEventListener('dragstart', (event) => {
    card = event.target.closest('.board-card');
    event.dataTransfer.effectAllowed = 'move';
  });
  board.addEventListener('dragover', (event) => {
    unmark();
    if (!buttonFor(event.target)) return;
    event.preventDefault(); // allows the drop
    event.target.closest('.board-column').classList.add('is-target');
  });
  board.addEventListener('drop', (event) => {
    event.preventDefault();
    buttonFor(event.target)?.click();
  });
  board.addEventListener('dragend', () => {
    unmark();
    card = null;
  });
})();
