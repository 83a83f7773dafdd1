#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about routers. usage: bench/routers.sh BUILD RUNS
# BUILD is where tools/ and bench/route were built. Says NAME|UNIT|AIM|MEDIAN|MIN|MAX for
# each row.
#
# First what a router costs, on the loopback interface (bench/route.c). Then how long it
# takes until the other one of two routers has taken over: a client calls a server, each
# in a network namespace of its own, while a router in a third one is killed, or none of
# its frames arrive any more. The longest call is one that was under way just then.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$top/tests/net/hosts.sh" || exit
. "$top/bench/rows.sh" || exit
hosts_enter bash "$0" "$@" || exit 77
set -euo pipefail
build=$1 runs=$2
dir=$(mktemp -d)
declare -A pids=() # by the name of the host

clean_up() {
	local pid

	for pid in "${pids[@]}"; do
		kill -KILL "$pid" && wait "$pid" || true
	done 2>/dev/null
	rm -rf "$dir"
}
trap clean_up EXIT

# ---- what a router costs ----

# number NAME: of what bench/route has printed
number() {
	awk -v name="$1" '$1 == name { print $2 }' "$dir/cost"
}

# quotient A B
quotient() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f\n", a / b }'
}

# cost TEXT SIZE DEPTH
cost() {
	local rates=() ratios=() speeds=() i

	for ((i = 0; i < runs; i++)); do
		"$build/bench/route" "$2" "$3" 1000 >"$dir/cost"
		rates+=("$(number router-rate)")
		speeds+=("$(quotient "$(number router-rate)" \
			"$(number direct-rate)")")
		ratios+=("$(quotient "$(number direct-ns)" \
			"$(number router-ns)")")
	done
	sum "PUT+ACK of $1 through a router on one core, both ends on the other" \
		1/s "" "${rates[@]}"
	sum "  to direct, one core for each end" ratio "" "${speeds[@]}"
	sum "  what a core can route, to what it can send and receive" \
		ratio "at least 0.7" "${ratios[@]}"
}

# ---- a router dies ----

# node NAME PROGRAM ARGUMENT...: until it is ready
node() {
	local at

	at "$1"
	mkfifo "$dir/ready"
	"${at[@]}" "$build/tools/bin/$2" "${@:3}" --port 988 --accept all \
		--socket "$dir/$1.sock" --log err >"$dir/ready" &
	pids[$1]=$!
	read -r _ <"$dir/ready"
	rm "$dir/ready"
}

router() { # NAME
	node "$1" lnetd --foreground --net "tcp1(eth0),tcp2(eth1)"
	"$build/tools/bin/lnetctl" --socket "$dir/$1.sock" set routing 1
}

# carried NAME: until that router has passed on 4 MiB more
carried() {
	local from

	from=$(rail_bytes "$1" 0)
	while (($(rail_bytes "$1" 0) - from < 4 << 20)); do
		sleep 0.01
	done
}

call() { # ARGUMENT...
	local at

	at client
	exec "${at[@]}" "$build/tools/bin/rpcping" --config "$dir/client.conf" \
		--port 988 --log err --time 1h --deadline 60 --grace 60 --verify \
		--json "$@" 10.9.1.2@tcp2
}

# lose_once TAKE GIVE ARGUMENT...: to $longest and $lost, one more value each
lose_once() {
	(call "${@:3}") >"$dir/out" </dev/null &
	pids[ping]=$!
	carried a
	carried b
	$1
	sleep 3
	$2
	carried a
	kill -INT "${pids[ping]}"
	wait "${pids[ping]}" || true
	unset 'pids[ping]'
	longest+=("$(awk -v us="$(value max "$dir/out")" \
		'BEGIN { printf "%.0f", us / 1000 }')")
	lost+=("$(value lost "$dir/out")")
}

# lose WHAT AIM TAKE GIVE ARGUMENT...
lose() {
	local longest=() lost=() i

	for ((i = 0; i < runs; i++)); do
		lose_once "${@:3}"
	done
	sum "$1: longest call" ms "$2" "${longest[@]}"
	sum "$1: calls lost" calls 0 "${lost[@]}"
}

killed() {
	kill -KILL "${pids[a]}"
	wait "${pids[a]}" 2>/dev/null || true
	unset 'pids[a]'
}
back() { router a; }
silent() { port_drop a0 && port_drop a1; }
far_silent() { port_drop a1; }

# lose_all TEXT ARGUMENT...
lose_all() {
	lose "$1, router killed" "at most 200" killed back "${@:2}"
	lose "$1, router silent" "at most 1000" silent wire_whole "${@:2}"
	lose "$1, router's far side silent" "" far_silent wire_whole "${@:2}"
}

cost "64 B" 64 64
cost "1 MiB" 1048576 4
hosts_routed
routed_conf tcp1 0 tcp2 a b >"$dir/client.conf"
routed_conf tcp2 1 tcp1 a b >"$dir/server.conf"
router a
router b
node server rpcserve --config "$dir/server.conf"
lose_all "16 calls under way" --inflight 16
lose_all "4 writes of 300 KiB under way" --inflight 4 --bulk-write 300k
