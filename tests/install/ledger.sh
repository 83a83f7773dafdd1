#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: ledger.sh EXAMPLE DIR [KILLS]
# Builds examples/ledger, which is at EXAMPLE, in DIR with what is installed. While
# calls with deadlines of a minute are under way, their server is killed, KILLS times
# (3), and stopped for 5 s, and all connections are cut every 200 ms: every call
# succeeds, and what is in the store afterwards is as many entries as calls were
# made. pkg-config has to find ulrpc, and the linker at run time its library.
set -euo pipefail

. "$(dirname "$0")/../port.sh"
proxy_source=$(realpath "$(dirname "$0")/../tools/proxy.c")
example=$1 dir=$2 kills=${3:-3}
nid=127.0.0.87@tcp pid= client= proxy= calls=0

die() {
	echo "ledger.sh: $*" >&2
	exit 1
}

clean_up() {
	kill -KILL $pid $client $proxy 2>/dev/null || true
}
trap clean_up EXIT

start() {
	local tries

	./server "$nid" store "$port" <never >server.log 2>&1 &
	pid=$!
	for ((tries = 0; tries < 600; tries++)); do
		! grep -q "ready;" server.log || return 0
		kill -0 $pid 2>/dev/null || break
		sleep 0.05
	done
	cat server.log
	die "the server is not ready"
}

# survive WHAT HARM: 3000 calls are made while HARM, a function, is done.
survive() { # WHAT HARM
	./client 127.0.0.88@tcp "$nid" "$at" 3000 >client.log 2>&1 &
	client=$!
	$2
	wait $client || {
		cat client.log
		die "$1: a call was lost, or executed twice"
	}
	client=
	cat client.log
	calls=$((calls + 3000))
	grep -q "^3000 calls: 3000 ok, .* 3000 entries were added" client.log ||
		die "$1: that is not what was called"
}

# ---- harm ----

kill_server() {
	sleep "0.$((RANDOM % 5 + 1))"
	kill -KILL $pid
	wait $pid 2>/dev/null || true
	sleep "0.$((RANDOM % 8))"
	start
}

stop_server() {
	sleep 0.2
	kill -STOP $pid
	sleep 5
	kill -CONT $pid
}

# How many connections there have been.
connections() {
	echo count >&"$to_proxy"
	read -r said <&"$from_proxy"
}

# From the client's first one on, so that there must be a second.
cut_connections() {
	local said before

	connections
	before=$said
	while kill -0 $client 2>/dev/null && ((said == before)); do
		connections
	done
	while kill -0 $client 2>/dev/null; do
		echo cut >&"$to_proxy"
		read -r said <&"$from_proxy"
		sleep 0.2
	done
	connections
	((said > before + 1)) || die "nothing was cut"
}

# ---- the test ----

rm -rf "$dir"
cp -R "$example" "$dir"
cd "$dir"
make >make.log 2>&1 && cc -o proxy "$proxy_source" >>make.log 2>&1 || {
	cat make.log
	die "make fails"
}
mkdir store
mkfifo never
exec {never}<>never # its end is never reached
free_port port || die "perl finds no port"
free_port at
start
coproc passes { exec ./proxy 127.0.0.87 "$at" 127.0.0.87 "$port"; }
proxy=$! from_proxy=${passes[0]} to_proxy=${passes[1]}
read -r -t 60 ready <&"$from_proxy" || die "the proxy does not listen"
for ((i = 0; i < kills; i++)); do
	survive "kill $i" kill_server
done
survive "stopped" stop_server
survive "cut" cut_connections
echo "$calls calls, $kills kills"
