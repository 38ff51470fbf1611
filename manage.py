#!/usr/bin/env python
"""The platform's command line."""

import gc
import os
import sys


def main() -> None:
    """Run a management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
    # What loads now stays: to look through it again and again for what could be freed takes a tenth of a start.
    gc.disable()
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        django.setup()
        gc.freeze()
        gc.enable()
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as exc:
        # A wrong setting is the operator's to mend; a trace of our own code says nothing about it.
        sys.exit(f"Error: {exc}")


if __name__ == "__main__":
    main()
