"""Spec 09, 9.2: what deploy/ says is checked as far as it can be without a container engine."""

from __future__ import annotations

import ipaddress
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from platform_site.environment import BASE_DIR, SETTINGS
from tests.deploy.dockerfile import DEPLOY, DOCKERFILE, instructions
from tests.support.certificates import certificate_for
from tests.support.platform import free_port
from tests.support.programs import requires_program

PROGRAMS = Path(sys.executable).parent


def checked(*words: str | Path) -> tuple[int, str]:
    """(exit status, output) of a checker that was installed beside this Python."""
    done = subprocess.run([PROGRAMS / words[0], *words[1:]], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def hadolint(path: Path) -> tuple[int, str]:
    """What the linter of Dockerfiles says."""
    return checked("hadolint", "--no-color", "--failure-threshold", "style", path)


def compose_schema(path: Path) -> tuple[int, str]:
    """What the Compose Specification's own schema says, which comes with check-jsonschema."""
    return checked("check-jsonschema", "--builtin-schema", "vendor.compose-spec", path)


def test_hadolint_finds_nothing_in_the_dockerfile(tmp_path: Path) -> None:
    assert hadolint(DOCKERFILE) == (0, "")
    worse = tmp_path / "Dockerfile"
    for ours, theirs, rule in (
        ("python:3.11.14-slim-bookworm", "python", "DL3006"),
        ('CMD ["serve", "--only", "web"]', "CMD serve", "DL3025"),
        ("USER 10001", "USER root", "DL3002"),
    ):
        text = DOCKERFILE.read_text()
        assert ours in text
        worse.write_text(text.replace(ours, theirs))
        status, told = hadolint(worse)
        assert (status, rule in told) == (1, True), (rule, told)


def test_the_compose_file_fits_the_schema(tmp_path: Path) -> None:
    status, told = compose_schema(DEPLOY / "compose.yaml")
    assert status == 0, told
    worse = tmp_path / "compose.yaml"
    worse.write_text((DEPLOY / "compose.yaml").read_text().replace("depends_on:", "dependson:"))
    status, told = compose_schema(worse)
    assert (status, "'dependson' was unexpected" in told) == (1, True), told


def test_services_of_the_compose_file_are_sound() -> None:
    """What the schema cannot say: volumes are declared, who is waited for has a health check, ports are the proxy's."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    for name, service in services.items():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).is_file(), (name, volume)
        waited_for = service.get("depends_on", ())
        for other in waited_for:
            assert other in services
            if isinstance(waited_for, dict):
                assert waited_for[other] == {"condition": "service_healthy"}
                assert services[other]["healthcheck"]["test"]
        assert "restart" in service, name
        assert not service.get("privileged"), name
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]


def test_every_sample_names_the_proxy_in_front_of_its_web_nodes() -> None:
    """Otherwise all callers share the proxy's address, and its limits."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    proxy = compose["services"]["proxy"]["networks"]["default"]["ipv4_address"]
    assert compose["services"]["web"]["environment"]["TRUSTED_PROXIES"] == proxy
    (network,) = compose["networks"]["default"]["ipam"]["config"]
    assert ipaddress.ip_address(proxy) in ipaddress.ip_network(network["subnet"])
    assert "TRUSTED_PROXIES=127.0.0.1" in (DEPLOY / "systemd" / "platform-web@.service").read_text()
    assert "TRUSTED_PROXIES=127.0.0.1" in (DEPLOY / "run_cluster.sh").read_text()


def test_every_sample_gives_its_proxy_single_processes() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert compose["services"]["web"]["environment"]["WEB_PROCESSES"] == "1"
    assert " WEB_PROCESSES=1 " in (DEPLOY / "systemd" / "platform-web@.service").read_text()
    assert "WEB_PROCESSES:-1" in (DEPLOY / "run_cluster.sh").read_text()


@pytest.mark.parametrize("sample", ["nginx/business-platform.conf", "tenants/nginx.conf"])
def test_nginx_accepts_the_sample(sample: str, tmp_path: Path) -> None:
    """As it is, but for certificates, and addresses below /etc and /var."""
    nginx = requires_program("nginx", "/usr/sbin/nginx")
    certificate = certificate_for("127.0.0.1", tmp_path)
    (tmp_path / "tenants.map").write_text("map $host $tenant_port { default 0; }")
    text = (DEPLOY / sample).read_text()
    for name, value in {
        "/etc/ssl/platform/fullchain.pem": certificate,
        "/etc/ssl/platform/privkey.pem": certificate,
        "/etc/nginx/business-platform-proxy.conf": DEPLOY / "nginx" / "proxy.conf",
        "/etc/nginx/business-platform-tenant.conf": DEPLOY / "tenants" / "proxy.conf",
        "/etc/nginx/tenants.map": tmp_path / "tenants.map",
        "/var/log/nginx": tmp_path,
        "listen 80;": f"listen {free_port()};",
        "listen 443 ": f"listen {free_port()} ",
    }.items():
        text = text.replace(name, str(value))
    temporary = "".join(
        f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid; events {{}} http {{ {temporary}\n{text}\n}}")
    done = subprocess.run(
        [nginx, "-t", "-c", tmp_path / "nginx.conf", "-p", tmp_path, "-e", tmp_path / "error.log"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_sample_proxy_buffers_requests_and_ends_slow_ones() -> None:
    """And it opens a connection for each request: over a kept one a change may meet a node that begins to stop."""
    caddy, nginx = (DEPLOY / "Caddyfile").read_text(), (DEPLOY / "nginx" / "proxy.conf").read_text()
    assert re.search(r"^\s*request_buffers \d+MB$", caddy, re.MULTILINE)
    assert re.search(r"^\s*read_header \d+s$", caddy, re.MULTILINE)
    assert re.search(r"^\s*keepalive off$", caddy, re.MULTILINE)
    assert "proxy_request_buffering on;" in nginx
    assert "proxy_set_header Connection close;" in nginx
    for name in ("client_header_timeout", "client_body_timeout", "send_timeout"):
        assert re.search(rf"^{name} \d+s;$", nginx, re.MULTILINE), name


def test_the_build_sees_what_is_copied_and_nothing_else() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    copied = {
        path
        for name, arguments in instructions()
        if name == "COPY" and "--from=" not in arguments
        for path in arguments.split()[:-1]
    }
    assert patterns[0] == "*"
    assert {pattern.removeprefix("!") for pattern in patterns[1:-1]} == copied
    assert all(pattern.startswith("!") for pattern in patterns[1:-1])
    assert patterns[-1] == "**/__pycache__"


def test_every_base_image_is_pinned_to_a_version() -> None:
    images = [arguments.split()[0] for name, arguments in instructions() if name == "FROM"]
    images += [
        s["image"] for s in yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"].values() if "image" in s
    ]
    assert len(images) == 5
    for image in images:
        assert re.fullmatch(r"[\w/.-]+:\d+\.\d+(\.\d+)?-[\w.-]+", image), image


def test_everything_that_is_copied_exists_and_every_app_is() -> None:
    copied = set()
    for name, arguments in instructions():
        if name == "COPY" and "--from=" not in arguments:
            copied |= set(arguments.split()[:-1])
    for path in copied:
        assert (BASE_DIR / path).exists(), path
    apps = {"foundation", "identity", "domain", "scripts", "rules", "webhooks", "jobs", "event_sinks", "platform_site"}
    assert apps <= copied
    assert {"templates", "locale", "manage.py", "requirements.txt"} <= copied


def test_the_image_does_not_run_as_root_and_says_whether_it_is_healthy() -> None:
    last_user = [arguments for name, arguments in instructions() if name == "USER"][-1]
    assert last_user not in {"root", "0"}
    check = next(arguments for name, arguments in instructions() if name == "HEALTHCHECK")
    command = json.loads(check[check.index("[") :])
    assert command[0] == "python"
    compile(command[2], "HEALTHCHECK", "exec")
    assert "ADD" not in {name for name, _arguments in instructions()}


def test_layers_hold_neither_package_lists_nor_pips_cache() -> None:
    runs = [arguments for name, arguments in instructions() if name == "RUN"]
    for run in runs:
        # hadolint looks for the lists in the last stage only.
        assert ("apt-get update" in run) == ("rm -rf /var/lib/apt/lists/*" in run), run
        assert ("pip install" in run) == ("--no-cache-dir" in run), run


def test_settings_in_deploy_are_settings_of_ours() -> None:
    known = {setting.name for setting in SETTINGS}
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(compose["x-platform"]["environment"]) <= known
    for unit in (DEPLOY / "systemd").glob("*.service"):
        for line in re.findall(r"^Environment=(.*)$", unit.read_text(), re.MULTILINE):
            assert {word.split("=")[0] for word in shlex.split(line)} <= known, unit
    own = {"PATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
    for name, arguments in instructions():
        if name == "ENV":
            assert {word.split("=")[0] for word in shlex.split(arguments)} <= known | own


def test_every_database_of_pgbouncer_is_that_of_a_unit() -> None:
    """Nodes and workers have different ones, so a worker's unit reads a file of its own, after the common one."""
    text = (DEPLOY / "pgbouncer.ini").read_text()
    served = set(re.findall(r"^(\w+) = host=", text, re.MULTILINE))
    assert served == set(re.findall(r"^;   DATABASE_URL=\S+/(\w+)$", text, re.MULTILINE))
    for role, files in {"web": [], "worker": ["-/etc/business-platform-worker.env"]}.items():
        unit = (DEPLOY / "systemd" / f"platform-{role}@.service").read_text()
        read = re.findall(r"^EnvironmentFile=(.*)$", unit, re.MULTILINE)
        assert read == ["/etc/business-platform.env", *files]
        assert all(each.lstrip("-") in text for each in files)


@pytest.mark.parametrize("role", ["web", "worker"])
def test_units_and_services_start_what_there_is(role: str) -> None:
    unit = (DEPLOY / "systemd" / f"platform-{role}@.service").read_text()
    assert f"manage.py serve --only {role}\n" in unit
    assert "NoNewPrivileges=true" in unit
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert compose["services"][role]["command"] == ["serve", "--only", role]
    assert compose["services"][role]["cap_drop"] == ["ALL"]


def test_no_secret_is_in_deploy() -> None:
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            assert not re.search(r"(?i)(password|secret)[=:]\s*['\"]?[a-z0-9]{3,}", path.read_text()), path


#: As manage.py does, one after the other in one process: starting Django takes longer than these commands.
_COMMANDS = """
import os, sys
sys.path.insert(0, "")
os.environ["DJANGO_SETTINGS_MODULE"] = "platform_site.settings"
from django.core.management import execute_from_command_line
for line in (["collectstatic", "--noinput", "-v0"], ["check"], ["serve", "--help"]):
    execute_from_command_line(["manage.py", *line])
"""


@pytest.mark.process
@pytest.mark.once
def test_the_copied_tree_alone_is_the_platform(tmp_path: Path) -> None:
    """The image's second stage by hand: only what COPY takes, in a directory of its own."""
    app = tmp_path / "app"
    app.mkdir()
    for name, arguments in instructions():
        if name == "COPY" and "--from=" not in arguments:
            subprocess.run(["cp", "-r", *[str(BASE_DIR / s) for s in arguments.split()[:-1]], str(app)], check=True)
    done = subprocess.run(
        [sys.executable, "-P", "-c", _COMMANDS],
        cwd=app,
        env={"PATH": "/usr/bin:/bin", "DATA_DIR": str(tmp_path / "data"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "usage: manage.py serve" in done.stdout) == (0, True), done.stderr


def test_pip_understands_how_the_image_installs() -> None:
    """Here everything is installed already. That it can be, from nothing, is shown by tests.newcomer."""
    run = next(arguments for name, arguments in instructions() if name == "RUN" and "pip install" in arguments)
    _, _, words = run.partition("/venv/bin/pip install ")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", *shlex.split(words)],
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Would install" in done.stdout) == (0, False), done.stdout + done.stderr
