#!/usr/bin/env bash
# The production shape on one machine, without containers: two web nodes of one process and two workers with PostgreSQL and Redis,
# behind nginx with the settings of deploy/nginx/. Ctrl-C or SIGTERM stops all of it in order.
#
#   make setup && deploy/run_cluster.sh
#
#   PORT          of the proxy (8000)                     WEB_PORTS   of the two web nodes ("8001 8002")
#   DATABASE_URL  of an existing database (a database `platform_cluster` on the PostgreSQL server of this machine)
#   REDIS_URL     of a Redis or Valkey that is there (a redis-server of its own, on REDIS_PORT, 8006)
#   DATA_DIR      (./.data/cluster); its logs/ has what each node says and nginx's access.log with the node that answered
#
# DEMO=1, and every other setting of docs/reference/settings.md, is handed on to the nodes. A node that ends is started
# again, as systemd would: `kill $(cat .data/cluster/run/web-8001.pid)` is a graceful restart of a node.
set -euo pipefail
cd "$(dirname "$0")/.."

port=${PORT:-8000}
redis_port=${REDIS_PORT:-8006}
read -r -a web_ports <<<"${WEB_PORTS:-8001 8002}"
export DATA_DIR=${DATA_DIR:-$PWD/.data/cluster}
export BASE_URL=${BASE_URL:-http://127.0.0.1:$port}
export DATABASE_URL=${DATABASE_URL:-postgres://postgres@127.0.0.1:5432/platform_cluster}
export LOG_FORMAT=${LOG_FORMAT:-json}
export WEB_PROCESSES=${WEB_PROCESSES:-1}
unset HOST PORT # each node has its own
run=$DATA_DIR/run
logs=$DATA_DIR/logs
python=$PWD/.venv/bin/python

refuse() {
    echo "$1" >&2
    exit 1
}

[ ${#web_ports[@]} -eq 2 ] || refuse "WEB_PORTS names two ports, such as \"8001 8002\"."
[ -x "$python" ] || refuse "There is no .venv yet: run make setup first."
nginx=$(PATH=$PATH:/usr/sbin command -v nginx) || refuse "nginx is missing; on Debian and Ubuntu: apt-get install nginx-light."
install --directory --mode 0700 "$DATA_DIR" "$run" "$logs" "$run/nginx"
rm -f "$run"/*.pid "$run/stopping"

# --- what the nodes stand on ------------------------------------------------------------------------------------------

children=()

if [ -z "${REDIS_URL:-}" ]; then
    redis=$(command -v redis-server || command -v valkey-server) ||
        refuse "redis-server is missing; on Debian and Ubuntu: apt-get install redis-server. Or set REDIS_URL."
    setsid "$redis" --port "$redis_port" --bind 127.0.0.1 --save '' --appendonly no --dir "$run" >"$logs/redis.log" &
    redis_pid=$!
    export REDIS_URL=redis://127.0.0.1:$redis_port/0
fi

"$python" - <<'PYTHON'
"""The database is there, or is made."""
import os
import sys
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

url = urlsplit(os.environ["DATABASE_URL"])
try:
    psycopg.connect(os.environ["DATABASE_URL"], connect_timeout=5).close()
except psycopg.OperationalError as error:
    if "does not exist" not in str(error):
        sys.exit(f"PostgreSQL cannot be reached: {error}")
    with psycopg.connect(urlunsplit(url._replace(path="/postgres")), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0 LOCALE 'C.UTF-8'").format(sql.Identifier(url.path[1:])))
PYTHON

# --- the nodes --------------------------------------------------------------------------------------------------------

# A session of its own: Ctrl-C in the terminal reaches this script alone, which stops things in order.
node() { # node NAME [SETTING=VALUE...] -- COMMAND...
    local name=$1 settings=() pid
    shift
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift
    trap '' INT
    trap 'kill "$pid" 2>/dev/null || true' TERM
    while [ ! -e "$run/stopping" ]; do
        env "${settings[@]}" setsid "$@" >>"$logs/$name.log" 2>&1 &
        pid=$!
        echo "$pid" >"$run/$name.pid"
        # A signal ends the first wait and not the node.
        wait "$pid" || wait "$pid" || true
        [ -e "$run/stopping" ] || sleep 0.5
    done
    rm -f "$run/$name.pid"
}

stop() {
    trap '' INT TERM
    touch "$run/stopping"
    echo "Stopping ..."
    # The proxy first: it finishes what it has taken and takes nothing more.
    [ -z "${nginx_pid:-}" ] || { kill -QUIT "$nginx_pid" 2>/dev/null || true; wait "$nginx_pid" || true; }
    for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
    for child in "${children[@]}"; do wait "$child" || true; done
    [ -z "${redis_pid:-}" ] || { kill "$redis_pid" 2>/dev/null || true; wait "$redis_pid" || true; }
    echo "Stopped."
}
trap stop EXIT
trap 'exit 0' INT TERM

for node_port in "${web_ports[@]}"; do
    node "web-$node_port" HOST=127.0.0.1 TRUSTED_PROXIES=127.0.0.1 "PORT=$node_port" -- "$python" manage.py serve --only web &
    children+=($!)
done
for number in 1 2; do
    node "worker-$number" -- "$python" manage.py serve --only worker &
    children+=($!)
done

# --- the proxy --------------------------------------------------------------------------------------------------------

{
    [ "$(id -u)" -ne 0 ] || echo "user root; # below a DATA_DIR that nobody else may enter"
    cat <<NGINX
pid $run/nginx.pid;
error_log $logs/nginx-error.log warn;
events { worker_connections 1024; }
http {
    log_format nodes '\$time_iso8601 \$status \$request_time \$upstream_addr \$upstream_status "\$request_method \$logged_uri"';
    access_log $logs/access.log nodes;
    client_body_temp_path $run/nginx/body;
    proxy_temp_path $run/nginx/proxy;
    fastcgi_temp_path $run/nginx/fastcgi;
    uwsgi_temp_path $run/nginx/uwsgi;
    scgi_temp_path $run/nginx/scgi;
NGINX
    # The log's addresses and the upstream as they are shipped, with the ports of these nodes.
    sed -n -e '/^map /,/^}/p' -e '/^upstream /,/^}/p' deploy/nginx/business-platform.conf |
        sed -e "s/:8001/:${web_ports[0]}/" -e "s/:8002/:${web_ports[1]}/"
    echo "server { listen 127.0.0.1:$port; include $PWD/deploy/nginx/proxy.conf; }"
    echo "}"
} >"$run/nginx.conf"
"$nginx" -q -t -p "$run/nginx" -c "$run/nginx.conf" -e "$logs/nginx-error.log"
setsid "$nginx" -p "$run/nginx" -c "$run/nginx.conf" -e "$logs/nginx-error.log" -g 'daemon off;' &
nginx_pid=$!

"$python" - "${web_ports[@]}" <<'PYTHON' || refuse "A web node did not start; $logs/web-*.log say why."
"""Every web node listens; a first start prepares the database before that."""
import contextlib
import socket
import sys
import time

deadline = time.monotonic() + 240
waited_for = {int(port) for port in sys.argv[1:]}
while waited_for:
    for port in tuple(waited_for):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            waited_for.discard(port)
    if time.monotonic() > deadline:
        sys.exit(1)
    time.sleep(0.1)
PYTHON
echo "$BASE_URL   (logs: $logs)"
echo "ready"
wait "$nginx_pid"
