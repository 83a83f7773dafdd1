#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: bench/knock.sh BUILD RUNS
# What strangers take from the calls of proven clients: rpcserve and rpcping, with keys,
# while bench/knock begins 10,000 handshakes in a second from 500 hosts, and while it does
# not. For bench/run, whose build has the programs. Lines: NAME|UNIT|AIM|MEDIAN|MIN|MAX.
set -euo pipefail
build=$1 runs=$2
tools=$build/tools/bin
hosts=500 rate=10000
dir=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
port=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1,
	LocalAddr => "127.0.0.41")->sockport')
{
	"$tools/ulnet-keys" --dir "$dir" authority bench
	"$tools/ulnet-keys" --dir "$dir" node a
} >/dev/null
keys=(--keys "$dir" --as a --port "$port")

"$tools/rpcserve" --net 'tcp(127.0.0.41)' --accept all "${keys[@]}" \
	--socket "$dir/socket" >"$dir/server" 2>&1 &
server=$!
until grep -q ready: "$dir/server"; do
	kill -0 "$server" || exit 1
	sleep 0.1
done
sleep 11 # for so long a server takes strangers for known (base/door.h)

row() { # NAME UNIT AIM FILE
	sort -g "$4" | awk -v row="$1|$2|$3" '{ v[NR] = $1 }
		END { print row "|" v[int((NR + 1) / 2)] "|" v[1] "|" v[NR] }'
}

# calls NAME: adds to files of that name
calls() {
	"$tools/rpcping" --net 'tcp(127.0.0.42)' "${keys[@]}" --time 2s \
		--inflight 16 127.0.0.41@tcp >"$dir/said"
	sed -n 's/.*: \([0-9]*\) calls\/s.*/\1/p' "$dir/said" >>"$dir/$1"
	sed -n 's/.* p50 \([0-9.]*\),.*/\1/p' "$dir/said" >>"$dir/$1-p50"
	sed -n 's/.* p99 \([0-9.]*\),.*/\1/p' "$dir/said" >>"$dir/$1-p99"
}

# us that handshakes have taken, and of the clock
counts() {
	"$tools/lnetctl" --socket "$dir/socket" metrics |
		sed -n 's/^ulnet_rpc_handshakes_us_total //p'
	echo "${EPOCHREALTIME/./}"
}

for ((i = 0; i < runs; i++)); do
	calls quiet
	"$build/bench/knock" 127.0.0.41@tcp "$port" "$dir" $hosts $rate 4 \
		>"$dir/knocks" &
	knocks=$!
	sleep 1
	counts >"$dir/counts"
	calls knocked
	counts >>"$dir/counts"
	wait "$knocks"
	sed -n 's/^knocks //p' "$dir/knocks" | awk '{ print $1 / 4 }' >>"$dir/rate"
	tr '\n' ' ' <"$dir/counts" | awk '{ print ($3 - $1) / ($4 - $2) }' \
		>>"$dir/share"
	paste <(tail -n 1 "$dir/knocked") <(tail -n 1 "$dir/quiet") |
		awk '{ print $1 / $2 }' >>"$dir/ratio"
done
row "handshakes begun by strangers" 1/s "" "$dir/rate"
row "handshakes, of the server's time" x "<= 0.125" "$dir/share"
row "calls of 128 B, 16 under way, meanwhile" 1/s "" "$dir/knocked"
row "the same, to those without strangers" x "" "$dir/ratio"
for p in p50 p99; do
	row "a call, $p, without strangers" us "" "$dir/quiet-$p"
	row "a call, $p, meanwhile" us "" "$dir/knocked-$p"
done
