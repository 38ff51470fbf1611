"""Settings of the worker processes that tests start: the product's, on the database of the test that starts them."""

import json
import os

from platform_site.settings import *  # noqa: F403
from platform_site.settings import DATABASES, Q_CLUSTER

for _alias, _name in json.loads(os.environ["TEST_DATABASES"]).items():
    DATABASES[_alias]["NAME"] = _name
# Each test process has a queue of its own: in another one nobody would hear of its commits.
Q_CLUSTER["name"] = os.environ["TEST_QUEUE"]
WEBHOOKS = json.loads(os.environ["TEST_WEBHOOKS"])
EGRESS_ALLOW = ["127.0.0.0/8"]
