#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: ledger.sh EXAMPLE DIR [KILLS]
# Builds examples/ledger, which is at EXAMPLE, in DIR with what is installed, and
# kills its server while calls are under way, KILLS times (3): every call succeeds,
# and what is in the store afterwards is as many entries as calls were made.
# pkg-config has to find ulrpc, and the linker at run time its library.
set -euo pipefail

example=$1 dir=$2 kills=${3:-3}
nid=127.0.0.87@tcp pid= client= calls=0

die() {
	echo "ledger.sh: $*" >&2
	exit 1
}

clean_up() {
	kill -KILL $pid $client 2>/dev/null || true
}
trap clean_up EXIT

free_port() {
	perl -MIO::Socket::INET -e '
		$s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.87")
			or exit 1;
		print $s->sockport'
}

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

rm -rf "$dir"
cp -R "$example" "$dir"
cd "$dir"
make >make.log 2>&1 || {
	cat make.log
	die "make fails"
}
mkdir store
mkfifo never
exec {never}<>never # its end is never reached
port=$(free_port) || die "perl finds no port"
start
for ((i = 0; i < kills; i++)); do
	./client 127.0.0.88@tcp "$nid" "$port" 3000 >client.log 2>&1 &
	client=$!
	sleep "0.$((RANDOM % 5 + 1))"
	kill -KILL $pid
	wait $pid 2>/dev/null || true
	sleep "0.$((RANDOM % 8))"
	start
	wait $client || {
		cat client.log
		die "kill $i: a call was lost, or executed twice"
	}
	client=
	cat client.log
	calls=$((calls + 3000))
	grep -q "^3000 calls: 3000 ok, .* 3000 entries were added" client.log ||
		die "kill $i: that is not what was called"
done
echo "$calls calls, $kills kills"
