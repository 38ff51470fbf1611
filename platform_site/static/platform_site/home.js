// Finds pages of the admin's home by their names. Without scripts the field stays hidden and everything is shown.
'use strict';
(() => {
  const field = document.getElementById('home-filter');
  const sections = [...document.querySelectorAll('.home-sections > section')];
  const nothing = document.getElementById('home-nothing');

  function narrow() {
    const words = field.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    for (const section of sections) {
      const title = section.querySelector('h3').textContent.toLocaleLowerCase();
      const items = [...section.querySelectorAll('li')];
      for (const item of items) {
        const name = `${title} ${item.querySelector('a')?.textContent.toLocaleLowerCase()}`;
        item.hidden = !words.every((word) => name.includes(word));
      }
      section.hidden = items.every((item) => item.hidden);
    }
    nothing.hidden = sections.some((section) => !section.hidden);
  }

  field.addEventListener('input', narrow);
  field.addEventListener('keydown', (event) => {
    const first = document.querySelector('.home-sections li:not([hidden]) a');
    if (event.key === 'Enter' && field.value && first) first.click();
  });
  field.hidden = false;
})();
