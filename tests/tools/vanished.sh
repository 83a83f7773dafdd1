#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A service of four workers, and a client that is killed, is stopped, or cancels
# while all four move its bulk: another client's calls go on. Requirement I6.
#
# Three of the four spare workers are the client's share. What they wait for is in
# nobody's way: it ends with -125, when the client is known to be gone, or has
# canceled. A wait on one of the four seats is given up, with -110, when the client
# has been silent for a second and others want the seat. How many of those there
# are depends on how fast others' calls come and go.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
taker=$PWD/tests/tools/taker
seats=4 share=3

lines() { # PATTERN: so many lines of the service's match (ERE)
	grep -cE "$1" "$dir/server.err"
}

# comes TEXT COMMAND...: the command succeeds within a minute.
comes() {
	local tries

	checks=$((checks + 1))
	for ((tries = 0; tries < 600; tries++)); do
		! "${@:2}" || return 0
		sleep 0.1
	done
	complain "$1"
	sed 's/^/| /' "$dir/server.err"
}

have_begun() { # COUNT
	[ "$(lines '^take$')" -ge "$1" ]
}

have_ended() { # STATUS COUNT
	[ "$(lines "^end $1\$")" -ge "$2" ]
}

all_have_ended() {
	[ "$(lines '^end ')" = "$(lines '^take$')" ]
}

# harm SIGNAL CALLS: to the client, when its calls have all workers that they can
# have.
harm() {
	local most=$((seats + share))

	free_port port || skip "perl cannot find a free port"
	start server "$taker" serve 127.0.0.2@tcp "$port" || {
		complain "the service does not start"
		sed 's/^/| /' "$dir/server.err"
		finish
	}
	"$taker" call 127.0.0.1@tcp "$port" 127.0.0.2@tcp "$2" &
	pids[client]=$!
	[ "$2" -gt $most ] || most=$2
	comes "fewer than $most handlers have begun" have_begun $most
	kill -"$1" "${pids[client]}"
}

others() { # COUNT
	run 0 timeout 100 "$rpcping" --net 'tcp(127.0.0.3)' --port "$port" \
		--service echo --method RawWorker --verify --count "$1" \
		--inflight 2 --deadline 90s 127.0.0.2@tcp
}

ends_are() { # STATUSES (ERE)
	expect "handlers have ended otherwise than with $1: $(
		grep '^end ' "$dir/server.err" | sort | uniq -c)" \
		test "$(lines '^end ')" = "$(lines "^end ($1)\$")"
}

# Nobody waits for the client any more.
all_end() {
	comes "fewer than $share handlers have ended with -125" \
		have_ended -125 $share
	comes "a handler has not ended" all_have_ended
	ends_are '-125|-110'
}

clear_away() {
	local name

	for name in client server; do
		kill -KILL "${pids[$name]}" 2>/dev/null
		wait "${pids[$name]}" 2>/dev/null
		unset "pids[$name]"
	done
}

# Their bulk ends when it is known that the client is gone, and with it all that
# still waits for a worker.
for calls in 4 40; do
	harm KILL $calls
	others 200
	all_end
	others 200
	clear_away
done

# A client that is stopped is there: what waits for it on spare workers goes on to
# wait. Others have three seats, and want the fourth only if workers that have
# replied are slow to come back.
harm STOP 4
others 200
expect "a stopped client has lost what nobody needed the worker of" \
	test "$(lines '^end ')" -le $((4 - share))
ends_are -110
kill -CONT "${pids[client]}"
others 200
clear_away

# Here they want one.
harm STOP 40
others 200
comes "no handler has ended with -110" have_ended -110 1
ends_are -110
kill -CONT "${pids[client]}"
others 200
clear_away

harm USR1 40
others 200
all_end
others 200
clear_away
finish
