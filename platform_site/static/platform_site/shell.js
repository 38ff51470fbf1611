// What unfold's templates ask of Alpine, whose CSP build knows no globals and runs no code from attributes.
'use strict';
(() => {
  // The policy forbids the style attribute; the same text is allowed through the CSSOM. Alpine and SimpleBar set it.
  const {setAttribute} = Element.prototype;
  Element.prototype.setAttribute = function (name, value) {
    if (name === 'style') this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };

  // Without scripts the page is shown as it is; with them once Alpine has hidden what is closed, in the colours chosen.
  const root = document.documentElement;
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  const chosen = JSON.parse(localStorage.getItem('adminTheme')) ?? 'auto';
  root.setAttribute('x-cloak', '');
  root.className = chosen === 'dark' || (chosen === 'auto' && system.matches) ? 'dark' : 'light';

  document.addEventListener('alpine:init', () => {
    const {Alpine} = window;

    Alpine.data('theme', () => {
      const page = window.theme();
      return {
        ...page,
        systemIsDark: system.matches,
        // The form's action keeps the tab (unfold's change_form.html).
        window: {location: {pathname: window.location.pathname, search: window.location.search}},
        init() {
          page.init.call(this);
          system.addEventListener('change', () => { this.systemIsDark = system.matches; });
        },
        themeBindings: {
          ...page.themeBindings,
          'x-bind:class'() {
            return this.adminTheme === 'dark' || (this.adminTheme === 'auto' && this.systemIsDark) ? 'dark' : 'light';
          },
        },
      };
    });

    Alpine.data('shell', (tab) => ({
      activeTab: window.getCurrentTab() || tab,
      open: true, // of folded collections
      sidebarMobileOpen: false,
      sidebarDesktopOpen: localStorage.getItem('sidebarDesktopOpen') !== '0',
      init() {
        this.$watch('sidebarDesktopOpen', (open) => localStorage.setItem('sidebarDesktopOpen', open ? '1' : '0'));
      },
    }));

    Alpine.data('searchForm', () => window.searchForm());
    Alpine.data('searchCommand', () => ({
      ...window.searchCommand(),
      // From within a field, too.
      handleShortcut(event) {
        if (event.key !== 'k' || !(event.metaKey || event.ctrlKey)) return;
        event.preventDefault();
        this.handleOpen();
      },
      // Enter takes the first result when none is chosen.
      selectItem(remember, inNewTab) {
        const link = this.items?.[Math.max(this.currentIndex - 1, 0)]?.querySelector('a');
        if (link) window.open(link.href, inNewTab ? '_blank' : '_self');
      },
    }));
  });

  // What is hidden takes no focus, and on a slow machine the browser has tried before anything is shown.
  document.addEventListener('alpine:initialized', () => {
    root.removeAttribute('x-cloak');
    requestAnimationFrame(() => {
      if (document.activeElement !== document.body) return;
      const adding = document.querySelector('#django-admin-form-add-constants[data-model-name]');
      (document.querySelector('[autofocus]') ?? adding?.closest('form')?.querySelector('.form-row :is(input:not([type=hidden]), select, textarea)'))?.focus();
    });
  });
})();
