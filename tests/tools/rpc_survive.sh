#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Calls that may be repeated end well, whatever happens to their server and to
# the connections between: it is killed and started again, stops for a while,
# and a proxy cuts, truncates, delays, and swallows. Every byte is verified, and
# no call is lost. ULNET_SURVIVE: rounds of each kind of harm (1). The server
# stops for 5 s, and with more than one round once more for 20 s.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

rounds=${ULNET_SURVIVE:-1} deadline=90
free_port at || skip "perl cannot find a free port"
free_port behind
server=127.0.0.2@tcp
client=(--net 'tcp(127.0.0.1)' --port "$at")

serve() {
	need_rpcserve server --net 'tcp(127.0.0.2)' --port "$behind" \
		--accept all
}

# harm COMMAND: the proxy does it, and answers $said.
harm() {
	echo "$1" >&"$to_proxy"
	read -r -t 60 said <&"$from_proxy" || complain "the proxy is gone"
	[[ $said == ok || $1 == count ]] || complain "$1: the proxy said $said"
}

# Until rpcping has written N more lines, one each 100 ms.
ticks() { # N
	await_lines $(($(wc -l <"$dir/live") + $1))
}

await_lines() { # N
	local tries

	for ((tries = 0; tries < 600; tries++)); do
		[ "$(wc -l <"$dir/live")" -lt "$1" ] || return 0
		sleep 0.05
	done
	complain "rpcping is silent"
}

# Calls are answered again: in two lines, as the first one may be of before.
recovered() {
	local line

	line=$(wc -l <"$dir/live")
	await "$dir/live" ' [1-9][0-9]* calls/s' $((line + 2))
}

# survive WHAT HARM ARGUMENT...: calls that are verified, while HARM, a
# function, is done.
survive() {
	local what=$1 does=$2 round

	start_ping --time 1h --verify --deadline "$deadline" --grace 90 --explain \
		"${@:3}" "$server"
	for ((round = 0; round < rounds; round++)); do
		$does
		recovered
	done
	kill -INT "${pids[ping]}"
	ran=$what
	end_ping 0
	has out '^  calls [1-9][0-9]*, lost 0,'
	sed -n "s/^  calls/$what: calls/p; s/^  counted/$what: counted/p" \
		"$dir/out"
}

# ---- harm ----

kill_server() {
	kill -KILL "${pids[server]}"
	wait "${pids[server]}" 2>/dev/null
	unset 'pids[server]'
	ticks 5
	serve
	recovered
}

# For a time, whatever rpcping says meanwhile: deadlines are times, too.
stop_server() {
	kill -STOP "${pids[server]}"
	sleep $((deadline > 60 ? 20 : 5))
	kill -CONT "${pids[server]}"
}

# Every 200 ms, so that most connections do not live longer. Bulk that waits for
# its data to come on a connection that was cut needs no other one meanwhile.
cut() {
	local before

	harm count
	before=$said
	for _ in {1..10}; do
		harm cut
		ticks 2
	done
	harm count
	expect "$((said - before)) connections in ten cuts" \
		test $((said - before)) -ge 2
}

truncate_all() {
	harm 'cut after 20000'
	ticks 10
	harm 'cut after 0'
}

# What was under way is lost, and so is the connection in the end, but nobody is
# told of the first.
swallow() {
	harm swallow
	ticks 5
	harm cut
}

hold() {
	harm hold
	ticks 20
	harm go
}

delay() {
	harm 'delay 50'
	ticks 10
	harm 'delay 0'
}

refuse() {
	harm refuse
	harm cut
	ticks 10
	harm accept
}

# ---- the test ----

serve
coproc proxy { exec tests/tools/proxy 127.0.0.2 "$at" 127.0.0.2 "$behind"; }
pids[proxy]=$!
from_proxy=${proxy[0]} to_proxy=${proxy[1]}
read -r -t 60 ready <&"$from_proxy" || complain "the proxy does not listen"

survive "nothing" true --inflight 16
# Whoever has a minute notices nothing but time.
deadline=60
survive "cut" cut --inflight 16
survive "stopped" stop_server --inflight 16
survive "stopped, at most once" stop_server --inflight 16 \
	--semantics at-most-once
survive "killed" kill_server --inflight 16
deadline=90
survive "cut, at most once" cut --inflight 16 --semantics at-most-once
survive "cut, bulk read" cut --inflight 4 --bulk-read 300k
survive "cut, bulk written" cut --inflight 4 --bulk-write 300k
survive "truncated" truncate_all --inflight 16
survive "swallowed" swallow --inflight 16
survive "held" hold --inflight 16
survive "delayed" delay --inflight 16
survive "refused" refuse --inflight 16
[ "$rounds" = 1 ] || survive "stopped for long" stop_server --inflight 16
survive "killed, workers" kill_server --inflight 16 --method EchoWorker \
	--delay 5ms
kill "${pids[proxy]}"
unset 'pids[proxy]'
finish
