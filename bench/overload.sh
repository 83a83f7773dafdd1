# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about overload: what a service does that is asked for more than
# it can do, over TCP on the loopback interface. For sourcing; uses row() and the
# programs in $tools.
#
# One worker, which sleeps for 20 ms for each call: 50 calls a second. Callers give
# each call one second. Replies a second that came in time, at several rates; and
# those to a client that makes one call at a time while another one always has 200
# under way.

overload_s=5 # of each measurement
overload_port=2988
overload_ms=20

# overload_ping ADDRESS OPTION...: replies a second
overload_ping() {
	local address=$1

	shift
	"$tools/rpcping" --net "tcp($address)" --port $overload_port \
		--service echo --method EchoWorker --delay ${overload_ms}ms \
		--deadline 1s --json "$@" 127.0.21.1@tcp 2>/dev/null |
		sed -n 's/.*"calls_per_s": \([0-9.]*\).*/\1/p'
}

overload_measure() {
	local capacity=$((1000 / overload_ms)) rate got aim server others

	"$tools/rpcserve" --net 'tcp(127.0.21.1)' --port $overload_port \
		--service echo --workers 1 >"$BUILD/overload.out" &
	server=$!
	while ! grep -q ready "$BUILD/overload.out"; do
		kill -0 $server || return 1
		sleep 0.1
	done
	for rate in $((capacity / 2)) $capacity $((2 * capacity)) \
		$((4 * capacity)); do
		aim=$((rate < capacity ? rate : capacity))
		got=$(overload_ping 127.0.21.2 --rate $rate --time ${overload_s}s)
		row "$rate calls/s to a service that can do $capacity" 1/s \
			">= $((aim * 9 / 10))" "$got" "$got" "$got"
	done
	overload_ping 127.0.21.2 --inflight 200 --time $((overload_s + 2))s \
		>"$BUILD/overload.others" &
	others=$!
	sleep 1
	got=$(overload_ping 127.0.21.3 --inflight 1 --time ${overload_s}s)
	row "one call at a time, while another client has 200 under way" 1/s \
		">= $((capacity / 2 * 9 / 10))" "$got" "$got" "$got"
	wait $others
	kill $server
	wait $server
}
