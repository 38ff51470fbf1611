"""A real mail server on loopback: speaks SMTP (RFC 5321) and keeps what it is given."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class MailServer:
    """`messages` holds what was delivered; `refuse` makes it turn every recipient away, as a full mailbox does."""

    messages: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    refuse: bool = False
    url: str = ""

    @contextmanager
    def running(self) -> Iterator[MailServer]:
        """Serve on a free port until the block ends; `url` is an EMAIL_URL."""
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _session(self)) as server:
            server.daemon_threads = True
            self.url = f"smtp://127.0.0.1:{server.server_address[1]}"
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


def _session(mail: MailServer) -> type[socketserver.StreamRequestHandler]:
    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 loopback")
            for line in self.rfile:
                command = line.decode().strip()
                match command[:4].upper():
                    case "RCPT" if mail.refuse:
                        self._say("452 mailbox full")
                    case "RCPT":
                        mail.recipients.append(command.partition("<")[2].partition(">")[0])
                        self._say("250 ok")
                    case "DATA":
                        self._say("354 go on")
                        mail.messages.append(message_from_bytes(self._data(), policy=policy.default))
                        self._say("250 ok")
                    case "QUIT":
                        self._say("221 bye")
                        return
                    case _:
                        self._say("250 ok")

        def _data(self) -> bytes:
            lines: list[bytes] = []
            while (line := self.rfile.readline()) not in {b".\r\n", b""}:
                lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
            return b"".join(lines)

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    return Session
