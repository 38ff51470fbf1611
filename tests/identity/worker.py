"""A process of its own that makes first requests with the tokens of a file; prints one line of JSON per answer.

python -m tests.identity.worker TOKENS START_AT
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> None:
    """Wait for the common start, then ask with each token."""
    import django

    django.setup()
    from django.test import Client

    tokens = Path(sys.argv[1]).read_text().split()
    client = Client(raise_request_exception=False)
    time.sleep(max(0.0, float(sys.argv[2]) - time.time()))
    for token in tokens:
        response = client.get("/api/whoami", headers={"Authorization": f"Bearer {token}"})
        answer = {
            "status": response.status_code,
            "body": response.json(),
            "retry": response.headers.get("Retry-After"),
            "type": response.headers.get("Content-Type"),
            "cache": response.headers.get("Cache-Control"),
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
