// Tiles of saved queries: each is loaded by a request of its own, and takes the place of the card that names its address.
'use strict';
for (const card of document.querySelectorAll('[data-load]')) {
  (async () => {
    const response = await fetch(card.dataset.load, {credentials: 'same-origin'});
    // Who is not signed in any more is sent to the login page.
    if (!response.ok || response.redirected) throw new Error(String(response.status));
    const loaded = new DOMParser().parseFromString(await response.text(), 'text/html').querySelector('article');
    card.replaceWith(loaded);
    window.charts.show(loaded);
  })().catch(() => {
    card.querySelector('.health-figure').textContent = card.dataset.failed;
    card.removeAttribute('aria-busy');
  });
}
