#!/bin/sh
# Copies the libraries that pages load as they are. Source maps are not served, so the comments that name them go.
set -e
to=../static/platform_site
copy() { sed -E 's,/[/*]# sourceMappingURL=[^ *]*( *\*/)?,,' "node_modules/$1" > "$to/$2"; }
copy @alpinejs/csp/dist/cdn.min.js alpine.js
copy swagger-ui-dist/swagger-ui-bundle.js swagger-ui.js
copy swagger-ui-dist/swagger-ui.css swagger-ui.css
copy tabulator-tables/dist/js/tabulator.min.js tabulator.js
copy tabulator-tables/dist/css/tabulator.min.css tabulator.css
{ cat node_modules/swagger-ui-dist/NOTICE; cat node_modules/swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt; cat node_modules/swagger-ui-dist/LICENSE; } > $to/swagger-ui.licence.txt
cp node_modules/tabulator-tables/LICENSE $to/tabulator.licence.txt
