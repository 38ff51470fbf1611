// The settings of the chosen job type; those of the others are hidden.
'use strict';
document.addEventListener('DOMContentLoaded', () => {
  for (const settings of document.querySelectorAll('.job-settings')) {
    const chosen = settings.closest('form').elements[settings.dataset.typeField];
    if (!chosen) continue;
    const show = () => {
      for (const group of settings.querySelectorAll('[data-job-type]')) group.hidden = group.dataset.jobType !== chosen.value;
    };
    chosen.addEventListener('change', show);
    show();
  }
});
