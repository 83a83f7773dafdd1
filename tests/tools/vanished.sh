#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A service of four workers, and a client that is killed, is stopped, or cancels
# while all four move its bulk: another client's calls go on. Requirement I6.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
taker=$PWD/tests/tools/taker

# harm SIGNAL CALLS: to the client, when its calls are under way.
harm() {
	port=$(free_port) || skip "perl cannot find a free port"
	start server "$taker" serve 127.0.0.2@tcp "$port" || {
		complain "the service does not start"
		sed 's/^/| /' "$dir/server.err"
		finish
	}
	"$taker" call 127.0.0.1@tcp "$port" 127.0.0.2@tcp "$2" &
	pids[client]=$!
	await "$dir/server.err" '^take' 4
	kill -"$1" "${pids[client]}"
}

others() { # COUNT
	run 0 timeout 100 "$rpcping" --net 'tcp(127.0.0.3)' --port "$port" \
		--service echo --method RawWorker --verify --count "$1" \
		--inflight 2 --deadline 90s 127.0.0.2@tcp
}

ended() { # STATUS COUNT
	local tries

	checks=$((checks + 1))
	for ((tries = 0; tries < 600; tries++)); do
		[ "$(grep -c "^end $1\$" "$dir/server.err")" -lt "$2" ] || return 0
		sleep 0.1
	done
	complain "fewer than $2 handlers have ended with $1"
	sed 's/^/| /' "$dir/server.err"
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
	ended -125 4
	others 200
	clear_away
done

# A client that is stopped is there: no call of it is given up that others do not
# need the worker of.
harm STOP 4
others 200
expect "no call of the stopped client has ended" \
	test -z "$(grep '^end' "$dir/server.err")"
kill -CONT "${pids[client]}"
others 200
clear_away

harm STOP 40
others 200
ended -110 1
kill -CONT "${pids[client]}"
others 200
clear_away

harm USR1 40
others 200
ended -125 4
others 200
clear_away
finish
