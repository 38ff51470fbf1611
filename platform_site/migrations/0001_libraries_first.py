"""Nothing but an order: the libraries' migrations run before the domain's.

Django keeps the model classes of its migration state up to date with each operation. With the domain's hundred models
in it every operation of the libraries' fifty migrations is dear; run before there are any, all of them together cost less
than a second. Measured on an empty database: 3.3 instead of 9.8 seconds of processor time.
"""

from django.db import migrations


class Migration(migrations.Migration):
    """No operations."""

    dependencies = [
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("django_q", "0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more"),
        ("oauth2_provider", "0022_refreshtoken_token_family_index"),
        ("sessions", "0001_initial"),
    ]
    run_before = [("domain", "0001_initial")]
    operations = []
